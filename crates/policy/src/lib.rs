//! Judge: request × rules → verdict.
//!
//! Everything that has an opinion about a request is a [`Rule`]: the kernel's own checks, the
//! [`Jurisdiction`], later the workflow, built-in, YAML and extension rules. [`decide`] asks all of
//! them and joins their [`Verdict`]s; [`evaluate_all`] shows who said what.
//!
//! **Invariant.** Nothing here does input or output, reads a clock or the environment: the same
//! request and rules give the same verdict with the same reasons on any machine, in any order. The one
//! exception is [`serve`], the whole of the policy host's process: it speaks on the handles it is given
//! and times what it runs.
//!
//! **Invariant.** Silence is denial, and so is failure: what no rule allows, or what a rule cannot
//! judge, is denied.

mod allowed_packages;
mod builtin;
mod calls;
mod capabilities;
mod capability;
mod cases;
mod condition;
mod examples;
mod exception;
mod explain;
mod extension;
mod facts;
mod file;
mod glob;
mod jurisdiction;
mod meaning;
mod rule;
mod sanitise;
mod summary;
mod token;
mod trial;
mod verdict;
mod warning;
mod whole;
pub mod yaml;

pub use allowed_packages::allow_packages;
pub use builtin::{BuiltIn, Part};
pub use calls::{
    CORE_PLUGIN, CORE_PLUGINS, CallError, SIDE_EFFECTS, Shape, THIRD_PARTY, TRUSTED_WRITE,
    canonical_call, core_tags, known_calls, shape_of,
};
pub use capabilities::Capabilities;
pub use capability::Action;
pub use cases::{Case, SAMPLE_ACTOR, SampleCall, read_cases, refused_path};
pub use condition::Target;
pub use exception::{Exception, ExceptionError};
pub use explain::{Explanation, Found, Look, explain};
pub use extension::answer::{MAX_REASON_CHARS, RuleAnswer};
pub use extension::engine::{
    Engine, EngineError, LoadedRule, MAX_ENGINE_BYTES, MAX_EVALUATION_MS, Prepared, Stopwatch,
    UsedEngine,
};
pub use extension::host::{HostError, serve};
pub use extension::input::ExtensionInput;
pub use extension::protocol::{
    HostAnswer, HostMessage, MAX_HOST_ANSWER_BYTES, MAX_HOST_MESSAGE_BYTES, ProtocolError,
};
pub use extension::source::{MAX_RULE_BYTES, RuleProblem};
pub use facts::{Caller, Facts, Isolation, Subject};
pub use file::{
    AskAbout, DEFAULT_POLICY, DependencyRules, ECOSYSTEMS, EXEMPTIONS, Exemption, Exemptions,
    MAX_POLICY_BYTES, NetworkWhitelist, POLICY_SCHEMA, PackagePattern, PolicyFile, SkillPattern,
    SkillRules,
};
pub use glob::{Glob, GlobError, GlobIndex, GlobProblem};
pub use jurisdiction::{Jurisdiction, NameError, Names, RequiredField, UnknownField};
pub use rule::{Decided, Opinion, Rule, decide, evaluate_all, fold};
pub use sanitise::{
    BYTES_PER_TOKEN, DEFAULT_RESULT_TOKENS, Keep, LeftOut, MAX_PATTERN_BYTES, MAX_RESULT_TOKENS,
    MAX_SECRET_PATTERNS, MIN_RESULT_TOKENS, ResultLimit, ResultLimits, SanitiseError, Sanitised,
    Sanitiser, SecretPattern, estimated_tokens,
};
pub use summary::RuleSummary;
pub use token::{
    Checked, ContainerId, DEFAULT_TOKEN_TTL, Grant, MAX_LIVE_TOKENS, MAX_TOKEN_PATHS,
    MAX_TOKEN_TTL, Peer, Token, TokenBook, TokenCall, TokenError, TokenId, TokenRefusal,
    TokenScope,
};
pub use trial::{Change, Direction, PastDecision, Trial, try_on};
pub use verdict::{Layer, Place, Reason, Reasons, Source, Strength, Verdict};
pub use warning::Warning;
pub use yaml::{PolicyError, PolicyProblem};
