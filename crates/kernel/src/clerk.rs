//! What the kernel does for a tool that it runs: it remembers, and it says what the rules make of a file.

use fluffy_base::{Decision, Json, KernelRequest, KernelState, ProjectPath};
use fluffy_ledger::{Appended, Blob, Entered, EventType, Record};
use fluffy_policy::{Facts, Layer, Subject, Verdict, fold, shape_of};
use serde_json::Value;

use crate::door::Held;
use crate::narrate::bounded;
use crate::witness::Told;
use crate::{Kernel, KernelError, ToolError};

/// The longest text of a note's metadata.
const MAX_NOTE: usize = 2000;

/// Who the model is in requests.
pub(crate) const MODEL: &str = "model";

/// Something for the ledger that is not the answer to a request.
#[derive(Debug, Clone)]
pub struct Note {
    /// What kind of thing.
    pub event: EventType,
    /// What, in words.
    pub intent: String,
    /// The request that it belongs to.
    pub request_id: Option<String>,
    /// Where the work stands after it.
    pub workflow_state: Option<&'static str>,
    /// What else is told of it.
    pub metadata: Vec<(&'static str, String)>,
    /// All of it, kept privately: what a session is rebuilt from.
    pub content: Option<Value>,
}

/// What the rules say of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// It may be done.
    Yes,
    /// If a person agrees.
    Ask,
    /// It may not.
    No,
}

/// Something that remembers.
pub trait Journal {
    /// Remembers, before what is told has an effect.
    fn record(&self, note: Note) -> Result<Appended, ToolError>;
}

/// The kernel, as a tool that it runs sees it.
pub trait Clerk: Journal + Sync {
    /// The request that is being answered.
    fn request_id(&self) -> &str;

    /// The session's mode, if the request belongs to one.
    fn session_mode(&self) -> Option<&str> {
        None
    }

    /// What the rules say of the model doing this to a file, by the name of the tool that would do it.
    fn may(&self, tool: &'static str, path: &ProjectPath) -> May;
}

/// Nobody remembers, for tools that have nothing to be remembered.
impl Journal for () {
    fn record(&self, _: Note) -> Result<Appended, ToolError> {
        Err(ToolError("nothing is recorded here".to_owned()))
    }
}

impl Clerk for () {
    fn request_id(&self) -> &str {
        ""
    }

    fn may(&self, _: &'static str, _: &ProjectPath) -> May {
        May::No
    }
}

/// A clerk for one request.
pub(crate) struct AtWork<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) request_id: &'a str,
    pub(crate) mode: Option<&'a str>,
}

impl Journal for AtWork<'_> {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        self.kernel.record(note)
    }
}

impl Clerk for AtWork<'_> {
    fn request_id(&self) -> &str {
        self.request_id
    }

    fn session_mode(&self) -> Option<&str> {
        self.mode
    }

    fn may(&self, tool: &'static str, path: &ProjectPath) -> May {
        self.kernel.may(tool, path)
    }
}

impl Journal for Kernel {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        self.note(note).map_err(|error| ToolError(format!("it cannot be recorded: {error}")))
    }
}

impl Kernel {
    /// Whether the rules let the model do this to a file, by the name of the tool that would do it. Rules in
    /// another language are not asked: they judge requests, not every file of a project.
    pub(crate) fn may(&self, tool: &'static str, path: &ProjectPath) -> May {
        let Some(shape) = shape_of(tool) else { return May::No };
        let subject = Subject {
            paths: vec![path.clone()],
            changes: shape.changes,
            isolation: shape.isolation,
            ..Subject::default()
        };
        let request = KernelRequest::call("may", MODEL, "may it", tool, Json::empty_object());
        let facts = Facts::new(&request, KernelState::Idle).about(&subject);
        let policy = self.policy.in_force();
        let asked = self.arbiter.rules(&policy).filter(|rule| {
            // Where the work stands is asked by whoever takes what a job produced; and what is asked of is the file,
            // whether or not this kernel has the tool.
            !matches!(rule.layer(), Layer::Extension | Layer::Workflow)
                && rule.name() != crate::registry::REGISTERED
        });
        match fold(asked, &facts) {
            Verdict::Allow(_) => May::Yes,
            Verdict::Review(_) => May::Ask,
            Verdict::Pass | Verdict::Deny(_) => May::No,
        }
    }

    pub(crate) fn note(&self, note: Note) -> Result<Appended, KernelError> {
        let door = self.door.hold();
        if let Some(reason) = door.halted() {
            return Err(fluffy_ledger::LedgerError::Stopped(reason.to_owned()).into());
        }
        self.settle_note(door, note)
    }

    /// Enters a note, also after a halt, and waits for the disk without holding the door.
    pub(crate) fn settle_note(&self, door: Held<'_>, note: Note) -> Result<Appended, KernelError> {
        self.enter_told(&door)?;
        let record = self.noted(&door, note)?;
        self.settle_event(door, record)
    }

    /// Enters what the witness was told, and waits for the disk without holding the door.
    pub(crate) fn catch_up(&self) -> Result<(), KernelError> {
        let door = self.door.hold();
        let entered = self.enter_told(&door)?;
        drop(door);
        entered.into_iter().try_for_each(|entered| Ok(self.ledger.settle(entered).map(drop)?))
    }

    /// Enters what the witness was told, each under its own time.
    pub(crate) fn enter_told(&self, door: &Held<'_>) -> Result<Vec<Entered>, KernelError> {
        let told = self.witness.take().into_iter();
        told.map(|Told { ts_ms, note, refused }| {
            let mut record = self.noted(door, note)?;
            record.ts_ms = ts_ms;
            if let Some(why) = refused {
                if record.decision == Decision::Allow {
                    record.decision = Decision::Deny;
                }
                record.detail.deny_reason = Some(why.clone());
                record.error = Some(why);
            }
            Ok(self.ledger.enter(record))
        })
        .collect()
    }

    fn noted(&self, door: &Held<'_>, note: Note) -> Result<Record, KernelError> {
        let mut record = self.event(door, note.event, &bounded(&note.intent, MAX_NOTE));
        if let Some(request) = note.request_id {
            record.request_id = request;
        }
        record.detail.workflow_state = note.workflow_state.map(str::to_owned);
        for (name, text) in note.metadata {
            record.detail.metadata.insert(name, bounded(&text, MAX_NOTE));
        }
        if let Some(content) = note.content {
            let salt = self.ids.fresh().ok_or(KernelError::NoRandomness)?;
            record.input = Some(Blob::new(salt, content.to_string().as_bytes()));
        }
        Ok(record)
    }
}
