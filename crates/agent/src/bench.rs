//! Where the work is done: the seam between the loop and whoever judges and acts.

use fluffy_base::Json;
use fluffy_provider::{Call, CallResult, ToolDefinition, Turn};

/// Where a task is worked on. Every implementation keeps these promises:
///
/// 1. nothing happens that was not asked for by [`call`](Self::call) or [`finish`](Self::finish), and those
///    judge before they act;
/// 2. a turn is recorded before one of its calls runs: [`turn`](Self::turn) answers when it is;
/// 3. no call, whatever its name and arguments, makes it panic; each has one answer;
/// 4. once [`is_cancelled`](Self::is_cancelled) says so, it stays so, and what runs ends soon.
pub trait Bench: Send + Sync {
    /// The tools that the model may see now.
    fn tools(&self) -> Vec<ToolDefinition>;

    /// Where the work stands.
    fn state(&self) -> Standing;

    /// Who the model is and how it is to work, where that is not as in a task.
    fn manual(&self) -> Option<&str> {
        None
    }

    /// Submits the calls of one turn and waits for all of them. They may run at the same time where they do
    /// not get in each other's way.
    fn call(&self, calls: &[ParsedCall]) -> Vec<CallResult>;

    /// A call was answered by the loop itself, since it was not understood; it is to be recorded and never to
    /// run.
    fn refused(&self, call: &Call, reason: &str);

    /// Records what the model said, before anything comes of it.
    fn turn(&self, turn: &Turn) -> Result<(), AgentError>;

    /// Whether the task is done.
    fn status(&self) -> TaskStatus;

    /// The model has nothing more to ask for: brings the work to its end, or says what is missing.
    fn finish(&self, text: &str) -> Result<TaskStatus, AgentError>;

    /// Whether someone wants the task to stop. Asked at every piece of an answer, so it is quick.
    fn is_cancelled(&self) -> bool;

    /// The project's files as lines, three levels deep, at most 200.
    fn tree(&self) -> Vec<String>;

    /// What the person keeps before the model's eyes now; nothing where that does not change.
    fn pins(&self) -> Option<Vec<String>> {
        None
    }

    /// The project's own notes to models (`AGENTS.md`), the nearest last.
    fn rules(&self) -> Vec<Rules>;
}

/// A call that can be understood: a possible name, and arguments that are an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedCall {
    /// The call's id, which no other call of the conversation has.
    pub id: String,
    /// The tool's name; there may be no such tool.
    pub name: String,
    /// The arguments: always an object.
    pub arguments: Json,
}

/// Where the work stands, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The state of the workflow.
    pub state: String,
    /// The session's mode.
    pub mode: String,
    /// What is allowed now.
    pub allowed: Vec<String>,
    /// What to do next.
    pub hint: String,
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// Not at its end.
    Working {
        /// What is missing, in words for the model; may be empty.
        missing: String,
    },
    /// At its end.
    Done {
        /// What was done.
        summary: String,
    },
    /// It will not get there.
    Failed(Failure),
}

/// Why a task did not get to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do about it.
    pub fix: String,
}

/// Notes of the project to models. They come from the project's files, which anyone may have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Where they stand.
    pub path: String,
    /// What they say.
    pub text: String,
}

/// Why a bench cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// Something could not be recorded, and what is not recorded does not happen.
    #[error("the turn could not be recorded: {0}")]
    NotRecorded(String),
    /// The kernel has stopped.
    #[error("the kernel has stopped: {0}")]
    Halted(String),
}
