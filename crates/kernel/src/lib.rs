//! The only door: every action of any participant is a request that is validated, arbitrated,
//! executed and recorded, in that order, and answered with a receipt.
//!
//! ```text
//! submit ── VALIDATING ── ARBITRATING ── EXECUTING ── AUDITING ── receipt
//!              structure     every rule    with a        the ledger
//!              ambiguity     is asked      `Permit`      has it
//! ```
//!
//! **Invariant.** Nothing runs without a permit, which names one call, is used up by running it and
//! comes from arbitration only.
//!
//! **Invariant.** Every entry is made by whoever holds the door, and so is a halt: after the halt's
//! entry nothing is allowed.
//!
//! **Invariant.** What is checked, hashed, run and recorded is one value: the normalised request.

mod answer;
mod arbitration;
mod builtin;
mod config;
mod context;
mod door;
mod error;
mod execution;
mod kernel;
mod masking;
mod narrate;
mod past;
mod policy_host;
mod policy_store;
mod policy_update;
mod registry;
mod review;
mod reviewing;
mod session;
mod token_use;
mod tool;
mod validation;
mod variant;
mod walk;

pub use builtin::{Add, Echo};
pub use config::KernelConfig;
pub use context::{CallContext, Presented};
pub use error::{KernelError, RegistryError};
pub use kernel::Kernel;
pub use policy_host::{PolicyHost, PolicyHostError, RuleFile};
pub use policy_store::{Extensions, LoadedExtensions, NoExtensions};
pub use registry::Registry;
pub use review::{Question, Review, Reviewer};
pub use session::SessionStart;
pub use token_use::IssueError;
pub use tool::{Effect, Tool, ToolError, ToolSpec};
pub use variant::{
    Ambiguity, DualChannel, EvidenceFirst, Permissive, Strict, Variant, variant_named,
};
