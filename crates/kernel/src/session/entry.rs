//! What a session writes into the ledger, and reads back to go on after its process died.
//!
//! **Invariant.** A session is a fold over these entries: whatever it needs to go on is in one of them, and
//! an entry is made before what it tells has an effect.

use std::io::Read as _;

use fluffy_base::{Digest, ProjectPath};
use fluffy_ledger::EventType;
use fluffy_workflow::{Access, Event, Mode, Transition};
use serde::{Deserialize, Serialize};

use super::{CallAnswer, Pin};
use crate::dependencies::InstalledEnvironment;
use crate::files::{Stored, Tree};
use crate::staging::Step;
use crate::{Grant, Note, ToolError};

/// The version of what is written.
const VERSION: u32 = 1;

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Entry {
    /// It began.
    Opened {
        /// How strictly it works.
        mode: Mode,
        /// Whether it may write.
        access: Access,
        /// What the person wants, word by word.
        task: String,
        /// What it goes on from, if it is a fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork: Option<ForkedFrom>,
    },
    /// A model begins to drive it, or another goes on.
    Driven {
        /// Who provides the model, as the person named it.
        provider: String,
        /// The model.
        model: String,
    },
    /// The person pinned a file.
    Pinned(Pin),
    /// The person pinned it no more.
    Unpinned {
        /// Which file.
        path: ProjectPath,
    },
    /// The person said something more, and the session goes on with that.
    Said(Message),
    /// The person agreed to something for as long as the session lasts.
    Granted(Grant),
    /// That counts no more.
    Revoked {
        /// Which grant; all of them, where the policy was replaced.
        number: Option<u64>,
    },
    /// The work took a step.
    Happened {
        /// What happened.
        event: Event,
        /// The files that it is about.
        step: Option<Step>,
    },
    /// Packages were installed.
    Installed(InstalledEnvironment),
    /// The model had a turn.
    Turn {
        /// What it said and asked for.
        turn: serde_json::Value,
    },
    /// A call of the last turn was answered.
    Answered {
        /// The call's id.
        call: String,
        /// What the model is told.
        answer: CallAnswer,
    },
    /// A merge was agreed to and is about to be carried out.
    Merging {
        /// What it does.
        files: Vec<Merged>,
        /// The plan's digest.
        plan: String,
    },
    /// A merge is done: the files are in the project.
    MergeDone,
    /// A merge was not agreed to.
    MergeRejected {
        /// Why.
        why: String,
    },
    /// A commit was made, or could not be made and is not tried again.
    CommitDone {
        /// Its id.
        commit: Option<String>,
    },
    /// The model's work was taken back to a step.
    Rewound {
        /// The last step that still counts.
        to: u64,
    },
    /// The task is done.
    Completed {
        /// What was done.
        summary: String,
    },
    /// Its files are out of the archive, where somebody put them because nothing happened for long.
    Unarchived,
}

/// Something that the person said after the task itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What tells it from the same words said again; one that is brought twice is said once.
    pub id: String,
    /// What was said.
    pub text: String,
    /// After how many turns of the model.
    pub after: u64,
}

/// What a fork goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkedFrom {
    /// The session.
    pub session: String,
    /// The number of its last entry that was taken over.
    pub entry: u64,
    /// That entry's hash.
    pub hash: Digest,
    /// How many entries were taken over: a fork with fewer was not finished.
    pub copied: u64,
}

/// One file of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Merged {
    /// Where.
    pub(crate) path: ProjectPath,
    /// What is there now.
    pub(crate) now: Option<Stored>,
    /// Whether there was a file before.
    pub(crate) before: bool,
}

#[derive(Serialize, Deserialize)]
struct Versioned<E> {
    v: u32,
    entry: E,
}

impl Merged {
    /// Whether the project has it like that.
    pub(crate) fn is_in(&self, tree: &Tree) -> bool {
        let Some(stored) = self.now else {
            return matches!(tree.look(&self.path), Ok(None));
        };
        let Ok(file) = tree.file(&self.path) else { return false };
        let mut bytes = Vec::new();
        let read = file.take(stored.bytes.saturating_add(1)).read_to_end(&mut bytes);
        read.is_ok() && Digest::of(&bytes) == stored.digest
    }

    /// The word for what happened to it.
    pub(crate) fn change(&self) -> &'static str {
        match (self.before, self.now) {
            (false, _) => "added",
            (true, Some(_)) => "modified",
            (true, None) => "deleted",
        }
    }
}

impl Entry {
    /// The note for a step of the work.
    pub(crate) fn transition(&self, transition: &Transition) -> Result<Note, ToolError> {
        let Transition { from, via, to, .. } = transition;
        let mut note = self.note()?;
        note.workflow_state = Some(to.name());
        note.metadata.push(("from", from.name().to_owned()));
        note.metadata.push(("to", to.name().to_owned()));
        if let Some(via) = via {
            note.metadata.push(("via", via.name().to_owned()));
        }
        Ok(note)
    }

    /// The note for the ledger.
    pub(crate) fn note(&self) -> Result<Note, ToolError> {
        let content = serde_json::to_value(Versioned { v: VERSION, entry: self });
        let content =
            content.map_err(|error| ToolError(format!("it cannot be written: {error}")))?;
        let (event, intent) = self.words();
        let mut metadata = vec![("session_entry", self.kind().to_owned())];
        match self {
            Self::Happened { step: Some(step), .. } => {
                metadata.push(("step", step.number.to_string()));
            }
            Self::Merging { plan, files } => {
                metadata.push(("plan", plan.clone()));
                metadata.push(("files", files.len().to_string()));
            }
            Self::Pinned(pin) => metadata.push(("path", pin.path.to_string())),
            Self::Unpinned { path } => metadata.push(("path", path.to_string())),
            Self::Granted(grant) => {
                metadata.push(("grant", grant.number.to_string()));
                metadata.push(("tool", grant.tool.clone()));
                metadata.push(("target", grant.shown_target().to_owned()));
                metadata.push(("rules", grant.rules().join(", ")));
            }
            Self::Revoked { number: Some(number) } => {
                metadata.push(("grant", number.to_string()));
            }
            Self::Opened { fork: Some(fork), .. } => {
                metadata.push(("forked_from", fork.session.clone()));
                metadata.push(("forked_at", fork.entry.to_string()));
                metadata.push(("forked_hash", fork.hash.to_string()));
            }
            Self::MergeRejected { why } => metadata.push(("why", why.clone())),
            Self::Driven { provider, model } => {
                metadata.push(("provider", provider.clone()));
                metadata.push(("model", model.clone()));
            }
            Self::CommitDone { commit: Some(commit) } => metadata.push(("commit", commit.clone())),
            _other => {}
        }
        let content = Some(content);
        Ok(Note { event, intent, request_id: None, workflow_state: None, metadata, content })
    }

    /// Reads what was written.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        use serde::de::Error as _;
        let Versioned { v, entry } = serde_json::from_slice::<Versioned<Self>>(bytes)?;
        if v == VERSION {
            return Ok(entry);
        }
        Err(serde_json::Error::custom(format!("version {v}, and {VERSION} is the only one known")))
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Driven { .. } => "driven",
            Self::Pinned(_) => "pinned",
            Self::Unpinned { .. } => "unpinned",
            Self::Said(_) => "said",
            Self::Granted(_) => "granted",
            Self::Revoked { .. } => "revoked",
            Self::Happened { .. } => "happened",
            Self::Installed(_) => "installed",
            Self::Turn { .. } => "turn",
            Self::Answered { .. } => "answered",
            Self::Merging { .. } => "merging",
            Self::MergeDone => "merge_done",
            Self::MergeRejected { .. } => "merge_rejected",
            Self::CommitDone { .. } => "commit_done",
            Self::Rewound { .. } => "rewound",
            Self::Completed { .. } => "completed",
            Self::Unarchived => "unarchived",
        }
    }

    fn words(&self) -> (EventType, String) {
        let step = EventType::StateTransition;
        match self {
            Self::Opened { fork: Some(_), .. } => (step, "a session is forked".to_owned()),
            Self::Opened { .. } => (step, "a session begins".to_owned()),
            Self::Driven { .. } => (step, "a model drives the session".to_owned()),
            Self::Pinned(_) => (step, "a file is pinned".to_owned()),
            Self::Unpinned { .. } => (step, "a file is pinned no more".to_owned()),
            Self::Said(_) => (step, "the person says something more".to_owned()),
            Self::Granted(_) => {
                (EventType::HumanDecision, "a person agreed for the session".to_owned())
            }
            Self::Revoked { number: Some(_) } => {
                (EventType::HumanDecision, "a grant is revoked".to_owned())
            }
            Self::Revoked { number: None } => {
                (EventType::HumanDecision, "the grants end with their policy".to_owned())
            }
            Self::Happened { event: Event::ModeSet { .. }, .. } => {
                (EventType::SessionModeChange, "the mode is set".to_owned())
            }
            Self::Happened { event, .. } => (step, event.name().to_owned()),
            Self::Installed(_) => (step, "packages are installed for the session".to_owned()),
            Self::Turn { .. } => (EventType::AiTurn, "a turn of the model".to_owned()),
            Self::Answered { .. } => {
                (EventType::AiTurn, "a call of the model is answered".to_owned())
            }
            Self::Merging { .. } => (EventType::MergeApproved, "the merge begins".to_owned()),
            Self::MergeDone => (step, "the merge is done".to_owned()),
            Self::MergeRejected { .. } => {
                (EventType::MergeRejected, "the merge is rejected".to_owned())
            }
            Self::CommitDone { .. } => (step, "the commit is done".to_owned()),
            Self::Rewound { .. } => (EventType::HumanDecision, "the work is taken back".to_owned()),
            Self::Completed { .. } => (step, "the task is done".to_owned()),
            Self::Unarchived => (step, "the session is taken out of the archive".to_owned()),
        }
    }
}
