//! Why a kernel cannot be had, or a tool not registered.

use fluffy_base::StateError;
use fluffy_ledger::LedgerError;

/// Why a kernel cannot boot, halt, end or hand over evidence.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The ledger refuses; without it nothing can be decided.
    #[error("the kernel cannot use its ledger")]
    Ledger(#[from] LedgerError),
    /// The kernel's state does not let it: a halt of a halted kernel.
    #[error("the kernel's state does not allow this")]
    State(#[from] StateError),
    /// The policy names extension rules that cannot be used.
    #[error("the policy's extension rules cannot be used: {0}")]
    Extensions(String),
    /// The kernel's own tools cannot be registered.
    #[error("the kernel's own tools cannot be registered")]
    Registry(#[from] RegistryError),
    /// The system has no random bytes for ids.
    #[error("the system gives no random bytes")]
    NoRandomness,
    /// Something is to be recorded that cannot be written.
    #[error("what is to be recorded cannot be written: {0}")]
    Note(String),
}

/// Why a tool cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name is not one that a tool may have.
    #[error("`{0}` is no name for a tool: lower-case letters, digits, `_`, and dots inside")]
    Name(String),
    /// There is a tool of that name.
    #[error("a tool `{0}` is already registered")]
    Duplicate(String),
    /// The schema cannot be used.
    #[error("the schema of tool `{tool}` is not valid: {problem}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong with its schema.
        problem: String,
    },
    /// A parameter that looks like a path is not declared as one.
    #[error("argument `{argument}` of tool `{tool}` looks like a path and is not declared as one")]
    Path {
        /// The tool.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// The schema would let unknown arguments through.
    #[error("the schema of tool `{0}` must be an object with `additionalProperties: false`")]
    Open(String),
}
