//! A governed session: one task, from the person's words to the commit.
//!
//! [`Session`] stands between whoever drives a model and the kernel. Each call of the model becomes a request;
//! what it produced is taken into staging as a numbered step; where the workflow's guards are met, the session
//! goes on by itself: it has the finished work judged, merges and commits it.
//!
//! **Invariant.** Nothing here decides. The session asks the kernel for everything that has an effect, also for
//! what it does by itself, and every step is in the ledger before it counts.
//!
//! **Invariant.** The project is changed by the merge and by nothing else.

mod advance;
mod answer;
mod archive;
mod budget;
mod chronicle;
mod command_hosts;
mod desk;
mod dossier;
mod entry;
mod fork;
mod history;
mod installations;
mod left_changes;
mod offer;
mod open;
mod outline;
mod overview;
mod pins;
mod restore;
mod router;
mod rules;
mod saying;
mod status;
mod steering;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fluffy_base::{Clock, SessionId};
use fluffy_workflow::{Access, Event, Mode, State};

pub use self::answer::{CallAnswer, ModelCall};
pub(crate) use self::archive::tidy;
pub use self::archive::{ArchiveError, remove_archive};
pub(crate) use self::command_hosts::{COMMAND_HOSTS, hosts_of};
pub(crate) use self::desk::{Desk, failed};
pub use self::dossier::{Dossier, DossierEntry, StepDiff};
pub(crate) use self::entry::{Entry, Merged};
pub use self::entry::{ForkedFrom, Message};
pub use self::fork::{ForkPoint, Forked, fork};
pub use self::open::{CommitOptions, SessionConfig, SessionError};
pub use self::outline::Outline;
pub use self::overview::{SessionSummary, sessions};
pub use self::pins::Pin;
pub use self::restore::{Archived, Driver, RestoreError, StoredSession, TurnRecord};
use self::rules::{Expected, Proposal, Unmet};
pub use self::status::Status;
use self::steering::Steering;
use crate::tools::Views as _;
use crate::{Grant, Journal as _, Kernel, KernelError, Lost, Note, ToolError, ToolSpec};

/// The tools that the model is offered, in the order in which they are told.
pub const OFFERED: [&str; 20] = [
    "fs.read",
    "fs.list",
    "fs.exists",
    "search.grep",
    "search.glob",
    "fs.write",
    "fs.edit",
    "fs.delete",
    "test.run",
    "deps.install",
    "shell.run",
    "git.status",
    "git.diff",
    "git.log",
    "git.commit",
    "plan.complete",
    "tests.complete",
    "code.complete",
    "workflow.request_exemption",
    "task.complete",
];

/// How the names of skills begin that a session offers beside these, if its kernel knows any.
pub(crate) const SKILL: &str = "skill.";

/// The session's own call that puts finished work into the project.
pub(crate) const MERGE: &str = "session.merge";
/// The session's own call that finds out what packages resolve to.
pub(crate) const RESOLVE: &str = "deps.resolve";
/// The session's own call that puts the coverage baseline among finished work.
pub(crate) const KEEP_COVERAGE: &str = "session.keep_coverage";
/// The person's call that sets the mode.
pub(crate) const SET_MODE: &str = "session.set_mode";

/// The entry of a grant.
pub(crate) fn granted(grant: &Grant) -> Result<Note, ToolError> {
    Entry::Granted(grant.clone()).note()
}

/// The entry of a grant that counts no more, or of all.
pub(crate) fn revoked(number: Option<u64>) -> Result<Note, ToolError> {
    Entry::Revoked { number }.note()
}

/// One task on its way.
pub struct Session {
    kernel: Arc<Kernel>,
    desk: Arc<Desk>,
    /// The names of the tools of skills and plugins that are offered.
    skills: Arc<[String]>,
    proposal: Arc<Proposal>,
    /// The coverage baseline that is being asked for, if one is.
    expected: Arc<Expected>,
    /// What calls of the turn depend on in vain.
    unmet: Arc<Unmet>,
    clock: Arc<dyn Clock>,
    /// How many turns the model had.
    turns: AtomicU64,
    /// How many requests the session made by itself.
    own: AtomicU64,
    cancelled: Arc<AtomicBool>,
    /// Held while the model's calls are made or the person changes something, so that neither happens in the middle of the other.
    steering: Steering,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// There is something left to do: what, in words for the model.
    Working {
        /// What is missing.
        missing: String,
    },
    /// It is done.
    Done {
        /// What was done.
        summary: String,
    },
}

/// What became of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The files that were changed in the project.
    pub files_changed: Vec<String>,
    /// The commits that were made.
    pub commits: Vec<String>,
    /// Why the last merge was not agreed to, where that was the end of it.
    pub rejected: Option<String>,
}

/// Ends every job of a session at once, from another thread.
#[derive(Clone)]
pub struct Cancel {
    desk: Arc<Desk>,
    cancelled: Arc<AtomicBool>,
}

impl Cancel {
    /// Ends the task as soon as anybody looks.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.desk.workshop.close();
        if let Some(dependencies) = &self.desk.dependencies {
            dependencies.close();
        }
    }

    /// Ends the task after what is being done: nothing that runs is broken off.
    pub fn cancel_after_this(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    /// Whether the task was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }
}

impl Session {
    /// The session's id.
    pub fn id(&self) -> &SessionId {
        self.kernel.session_id()
    }

    /// The kernel that answers.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel that answers, as long as the session lasts: for whoever may have to halt it.
    pub fn kernel_handle(&self) -> std::sync::Weak<Kernel> {
        Arc::downgrade(&self.kernel)
    }

    /// The tools that the model is offered: ours, and every skill and plugin that the kernel was given.
    pub fn tools(&self) -> impl Iterator<Item = &ToolSpec> {
        let offered = OFFERED.into_iter().chain(self.skills.iter().map(String::as_str));
        offered.filter_map(|name| self.kernel.registry.find(name).map(|found| &found.spec))
    }

    /// The state of the work.
    pub fn state(&self) -> State {
        self.desk.state()
    }

    /// How strictly it is done.
    pub fn mode(&self) -> Mode {
        self.desk.look().workflow.mode()
    }

    /// Whether anything may be written.
    pub fn access(&self) -> Access {
        self.desk.look().workflow.standing().access
    }

    /// The project with the session's changes.
    pub fn view(&self) -> crate::View {
        self.desk.view()
    }

    /// What ends the session from another thread.
    pub fn cancel_handle(&self) -> Cancel {
        let (desk, cancelled) = (Arc::clone(&self.desk), Arc::clone(&self.cancelled));
        Cancel { desk, cancelled }
    }

    /// Notes a turn of the model, before its calls run.
    pub fn record_turn(&self, turn: serde_json::Value) -> Result<(), SessionError> {
        self.turns.fetch_add(1, Ordering::SeqCst);
        self.record(&Entry::Turn { turn })
    }

    /// Records who drives the session from now on.
    pub fn driven_by(&self, driver: &Driver) -> Result<(), SessionError> {
        let Driver { provider, model } = driver.clone();
        self.record(&Entry::Driven { provider, model })
    }

    /// How many turns the model had.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::SeqCst)
    }

    /// What became of the task so far, or of what the person said last.
    pub fn outcome(&self) -> Outcome {
        let progress = self.desk.look().progress.clone();
        let merged = progress.merged.iter().skip(progress.merged_before);
        let files = merged.map(|merged| merged.path.to_string());
        let files: std::collections::BTreeSet<_> = files.collect();
        Outcome {
            files_changed: files.into_iter().collect(),
            commits: progress.commits,
            rejected: progress.rejected,
        }
    }

    /// Whether the model has said that the task is done, and it is.
    pub fn is_done(&self) -> Option<String> {
        self.desk.look().progress.done.clone()
    }

    /// Why nothing can run any more, if that is so. A model that went on would be told so at every call, and paid for.
    pub fn lost(&self) -> Option<Lost> {
        self.desk.workshop.lost().cloned()
    }

    /// Gives the task up. What it produced stays in the session and goes nowhere.
    pub fn give_up(&self) -> Result<(), SessionError> {
        if self.state() != State::Idle {
            self.desk.happened(&*self.kernel, Event::Cancelled)?;
        }
        // What was agreed to for a session ends with it.
        if self.kernel.grants.end() {
            self.record(&Entry::Revoked { number: None })?;
        }
        Ok(())
    }

    /// Ends in order; gives the root of the ledger's tree.
    pub fn close(self) -> Result<String, KernelError> {
        let root = self.kernel.checkpoint()?.root.to_string();
        Kernel::end_shared(self.kernel)?;
        Ok(root)
    }

    fn record(&self, entry: &Entry) -> Result<(), SessionError> {
        self.kernel.record(entry.note()?)?;
        Ok(())
    }
}
