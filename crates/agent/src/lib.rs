//! Drives one session: prompt, stream, tool calls, context budget.
//!
//! [`Agent::run`] asks a provider for turns and carries what the model asks for to a [`Bench`], until the
//! bench says that the task is done, a cap is reached or someone cancels. [`Conversation`] is what the model
//! is shown of what was said.
//!
//! **Invariant.** Nothing here acts. What a model asks for reaches the bench as a [`ParsedCall`] or is
//! answered with a refusal; whether it happens is decided behind the bench.
//!
//! **Invariant.** Every call of a turn has exactly one answer, in the order of the calls.

mod agent;
mod bench;
mod calls;
mod caps;
mod clip;
mod conversation;
mod estimate;
mod facts;
mod listen;
mod notes;
mod outcome;
mod prompt;
mod retry;
mod session;
mod summary;
mod tools;

// What a bench is made of, for those who may not know providers themselves.
pub use fluffy_provider::{Call, CallOutcome, CallResult, Provider, ToolDefinition, Turn, to_line};

pub use agent::{Agent, MAX_INVALID, MAX_NUDGES};
pub use bench::{AgentError, Bench, Failure, ParsedCall, Rules, Standing, TaskStatus};
pub use calls::MAX_CALLS;
pub use caps::{Cap, Caps, Spent};
pub use conversation::Conversation;
pub use notes::{MAX_NOTE_BYTES, MAX_NOTES_BYTES};
pub use outcome::{Ended, Outcome};
pub use prompt::{MAX_FIRST_REQUEST_BYTES, MAX_SYSTEM_BYTES};
pub use session::{ResumeError, Resumed, Said, SessionBench, Spending, said, spending, transcript};
pub use tools::MAX_TOOLS_BYTES;
