//! What a rule may look at.
//!
//! **Invariant.** What a request says of itself and what the kernel found out are kept apart: paths,
//! sizes, tags and modes come from the kernel alone, in normal form.

use std::collections::BTreeSet;

use fluffy_base::{Json, KernelRequest, KernelState, ProjectPath};

use crate::calls::canonical_call;
use crate::verdict::Source;

/// What a rule may look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The request; its actor and intent are in Unicode's composed form.
    pub request: &'a KernelRequest,
    /// Where the kernel stood when the request arrived.
    pub state: KernelState,
    /// What the call acts on.
    pub subject: &'a Subject,
    /// Who asks, as far as the kernel knows.
    pub caller: &'a Caller,
}

/// What a call acts on, worked out by the kernel from the tool's declaration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The files and directories it names.
    pub paths: Vec<ProjectPath>,
    /// Whether it names the project's root, by itself or by leaving a path out.
    pub root: bool,
    /// Whether it changes what it names.
    pub changes: bool,
    /// How many bytes it would write into a file.
    pub file_bytes: Option<u64>,
    /// The program it would start with its arguments, where they are all texts.
    pub command: Option<Vec<String>>,
    /// The programs with their arguments, where it would start several of them. Each is judged as a command of its own, and what is
    /// said of all is joined; `command` is not looked at then.
    pub pipeline: Vec<Vec<String>>,
    /// Where it would run.
    pub isolation: Isolation,
    /// What running it can do to the world, if it is a skill or a plugin's tool.
    pub side_effect: Option<&'static str>,
}

/// Where a call runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// In the kernel's own process, which only tools without effect do.
    #[default]
    Kernel,
    /// In a sandbox of its own.
    Sandbox,
}

/// Who asks, as far as the kernel knows. Nothing of it is taken from the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Tags of the sender's identity, and of whoever's tool it calls.
    pub tags: BTreeSet<String>,
    /// The session's mode.
    pub mode: Option<String>,
    /// State of the test-first workflow.
    pub workflow_state: Option<String>,
    /// The capability token that was found valid for this call, as the rule that it stands for.
    pub token: Option<Source>,
    /// Whether this is the decision on issuing a token, which itself needs none.
    pub wants_token: bool,
}

static NO_SUBJECT: Subject = Subject {
    paths: Vec::new(),
    root: false,
    changes: false,
    file_bytes: None,
    command: None,
    pipeline: Vec::new(),
    isolation: Isolation::Kernel,
    side_effect: None,
};
static NO_CALLER: Caller = Caller {
    tags: BTreeSet::new(),
    mode: None,
    workflow_state: None,
    token: None,
    wants_token: false,
};

impl<'a> Facts<'a> {
    /// A request of which nothing is known but what it says.
    pub fn new(request: &'a KernelRequest, state: KernelState) -> Self {
        Self { request, state, subject: &NO_SUBJECT, caller: &NO_CALLER }
    }

    /// The same request, with what it acts on.
    #[must_use]
    pub fn about(self, subject: &'a Subject) -> Self {
        Self { subject, ..self }
    }

    /// The same request, with who asks.
    #[must_use]
    pub fn by(self, caller: &'a Caller) -> Self {
        Self { caller, ..self }
    }

    /// Who asks.
    pub fn actor(&self) -> &'a str {
        &self.request.actor
    }

    /// What for, in words.
    pub fn intent(&self) -> &'a str {
        &self.request.intent
    }

    /// The tool to run, if any, by its one name.
    pub fn tool(&self) -> Option<&'a str> {
        self.request.tool_call.as_ref().map(|call| canonical_call(&call.name))
    }

    /// The parameters of the tool, if one is to run.
    pub fn tool_params(&self) -> Option<&'a Json> {
        self.request.tool_call.as_ref().map(|call| &call.params)
    }

    /// What the sender says beside the tool call.
    pub fn params(&self) -> Option<&'a Json> {
        self.request.params.as_ref()
    }

    /// What justifies the request.
    pub fn evidence(&self) -> Option<&'a str> {
        self.request.evidence.as_deref()
    }
}
