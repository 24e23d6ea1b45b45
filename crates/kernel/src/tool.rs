//! What a tool is to the kernel: a name, a schema, and something to run.

use std::borrow::Cow;

use fluffy_base::{Json, ProjectPath};
use fluffy_policy::Shape;
use serde_json::Value;

use crate::Clerk;

/// What running a tool can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: one entry tells decision and result.
    None,
    /// Something: the decision is on disk before it starts, and the result is an entry of its own.
    Some,
}

/// What is known of a tool before it runs.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name: lower-case letters, digits, `_`, and dots inside (`fs.read`).
    pub name: Cow<'static, str>,
    /// What it does, in a sentence.
    pub summary: Cow<'static, str>,
    /// JSON Schema of its parameters: an object that refuses unknown members.
    pub schema: Value,
    /// What running it can change.
    pub effect: Effect,
    /// What its parameters mean to rules: which of them are paths and contents, and where it runs.
    pub shape: Shape,
}

/// Why a tool did not do what it was asked.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ToolError(pub String);

/// Why a call gave nothing, and whether it might a moment later.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// It would fail again: what it asks for is not there, or not possible.
    Lasting(ToolError),
    /// The reason may be gone in a moment: what was read changed meanwhile, or the system was busy.
    Passing(ToolError),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Lasting(error)
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lasting(error) | Failure::Passing(error) => error,
        }
    }
}

/// The programs that a call starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalledPrograms {
    /// Each with its arguments.
    pub commands: Vec<Vec<String>>,
    /// Where they start, beside what the parameters name.
    pub folders: Vec<ProjectPath>,
}

/// Something the kernel can run. Every implementation keeps these promises:
///
/// 1. it acts on the parameters it is given and on nothing else the request says;
/// 2. it ends;
/// 3. what it cannot do it says by an error; a panic is caught and counts as one.
pub trait Tool: Send + Sync {
    /// What is known of it before it runs. Asked once, at registration.
    fn spec(&self) -> ToolSpec;

    /// The folders of the project that a call can touch, whatever its parameters say, because its sandbox sees no others.
    /// Of such a tool no parameter is taken for a path.
    fn confined_to(&self) -> Option<Vec<ProjectPath>> {
        None
    }

    /// The tags of whoever's tool it is, given by the kernel: rules may ask for them.
    fn tags(&self) -> &'static [&'static str] {
        &[]
    }

    /// The programs of a call that starts several, each to be judged by itself, and the folders that they start in. `None` where the
    /// parameters that the tool declares say it all; an error refuses the call.
    fn programs(&self, _params: &Json) -> Result<Option<CalledPrograms>, String> {
        Ok(None)
    }

    /// Runs it with parameters that its schema accepts.
    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError>;

    /// Runs it and says of a failure whether it may pass: a tool without effect is then run once more.
    fn attempt(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, Failure> {
        self.run(params, clerk).map_err(Failure::Lasting)
    }

    /// The packages that a call is about, as `ecosystem:name`: what `dependencies.allow` of the policy could name.
    fn packages(&self, _params: &Json) -> Vec<String> {
        Vec::new()
    }

    /// What a person who is asked about a call should see beside it, line by line.
    fn notes(&self, _params: &Json) -> Vec<String> {
        Vec::new()
    }
}
