//! Make a skill trustworthy: proposed, built in a throw-away copy, verified by five gates, promoted by a person,
//! hashed again at every run and confined by what it declared.
//!
//! ```text
//! propose ── PROPOSED ── build ── BUILT ── verify ── VERIFIED ── promote ── TRUSTED ── run
//!    spec        ▲        packet     │       gates       │         person       │
//!                └─ research ◄───────┴───────────────────┘                      └─ revoke
//! ```
//!
//! **Invariant.** Every change of a skill's standing is one entry of the ledger ([`SkillEntry`]); tables, registry and
//! listings are folds over those entries and never asked whether a skill may run.
//!
//! **Invariant.** What was proposed cannot change: names, paths, side effects, folders, hosts and secrets of a run come
//! from the proposal in the ledger, never from the code, the registry or the caller.

mod base;
pub mod build;
mod entry;
mod gate;
mod gates;
mod gateway;
mod history;
mod name;
mod profile;
mod proposal;
mod python;
mod research;
mod run;
mod seal;
mod shelf;
mod shipped;
mod source;
pub mod steps;
mod tools;
mod verify;

pub use base::{Base, base};
pub use entry::{Attempt, BuildEnd, Pinned, Sealed, SkillEntry, Standing};
pub use gate::{Finding, Gate, GateResult};
pub use gates::{BenchError, Inspected, Judgement, VerifyError, inspect};
pub use gateway::{
    Gateway, GatewayError, MAX_ANSWER_CHARS, MAX_DIMENSIONS, MAX_PROMPT_CHARS, MAX_TEXTS,
    answer_fits, prompt_fits, texts_fit, vectors_fit,
};
pub use history::{HistoryLine, history};
pub use name::{NameError, SKILLS, SUPPORT, SkillName};
pub use profile::{Check, Forbidden, Profile, ProfileError, Report, Words};
pub use proposal::{Proposal, SideEffect};
pub use python::{PatternRule, RulesError, ScanRules, check, scan};
pub use research::{
    Advice, Classified, Evidence, Facts, FailedTest, FailureKind, Fault, Inquire, Inquiry,
    NoteParts, Question, ResearchError, Told, Trigger, Unusable, advise, approve_retry, classify,
    findings, note, research, skill_of_build, triggers,
};
pub use run::{
    Chain, ChainError, ChainRun, ChangedFile, Comparison, ExecutionRecord, Finished, KeepError,
    Kept, Raised, Replayed, RunError, RunFailure, RunOptions, RunOrder, Runs, Secrets, SkillTool,
    Step, TrustError, check_input,
};
pub use shelf::{
    ArtifactError, ArtifactKind, Artifacts, Build, BuildEnded, Execution, Illegal, Listed, Past,
    Promotion, ProposalError, Proposed, RegistryError, Research, Revocation, SealError, Shelf,
    ShelfError, ShelfOptions, Skill, Trusted, Verification, apply, read_sealed,
};
pub use shipped::{SHIPPED, Shipped, ShippedError, shipped};
pub use source::SourceFile;
pub use tools::{InstallStep, Runner, Tools, ToolsError, install, locate};
pub use verify::{Reading, VerificationError, Verified, VerifyOrder, check_invariants, verify};
