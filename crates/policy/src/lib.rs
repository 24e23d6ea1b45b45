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

mod extension;
mod file;
mod jurisdiction;
mod rule;
mod verdict;
mod yaml;

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
pub use file::{DEFAULT_POLICY, MAX_POLICY_BYTES, PolicyFile};
pub use jurisdiction::{Jurisdiction, NameError, Names, RequiredField, UnknownField};
pub use rule::{Decided, Facts, Opinion, Rule, decide, evaluate_all, fold};
pub use verdict::{Layer, Reason, Reasons, Strength, Verdict};
pub use yaml::{PolicyError, PolicyProblem};
