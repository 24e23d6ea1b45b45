//! Changes one file: written, edited or deleted by our own program as a guest.
//!
//! The guest sees the project with the session's changes and its own program, nothing else of the host's.
//!
//! **Invariant.** An edit gives exactly the file that was asked for, or an error. If the volume holds anything
//! else, nothing is taken.

use fluffy_base::{ByteSize, Digest, ProjectPath, Span};
use fluffy_sandbox::harvest::HarvestLimits;
use fluffy_sandbox::{
    Changes, Config, End, Input, Job, Limits, Outcome, Store, Template, Volume, Workspace,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

use super::file_host::{Answer, MAX_EDIT_BYTES, Refused};
use super::produce::{ProduceError, Taken, Taking, produce};
use super::{Produced, Workshop, WorkshopError};
use crate::files::Blobs;

/// How deep a file may lie, which bounds what making its directories leaves.
const DEPTH: usize = 64;

/// What the guest gets: enough for the largest file, in several copies.
pub(super) const LIMITS: Limits = Limits {
    memory: ByteSize::from_bytes(512 << 20),
    cpu: 1_000,
    processes: 4,
    duration: Some(Span::from_ms(20_000)),
    captured: ByteSize::from_bytes(64 << 10),
    disk: ByteSize::from_bytes(32 << 20),
    files: 1_000,
    open_files: 64,
};

/// A change to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// The file has this content, whether it was there or not; directories on the way are made.
    Write {
        /// Which.
        path: ProjectPath,
        /// All of it.
        content: String,
    },
    /// A text in the file is another.
    Replace {
        /// Which.
        path: ProjectPath,
        /// What is replaced: it must occur exactly once, unless all of its places are meant.
        old: String,
        /// What is there instead.
        new: String,
        /// Whether every place is meant.
        all: bool,
    },
    /// The file is gone.
    Delete {
        /// Which.
        path: ProjectPath,
    },
}

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It cannot be, as it is.
    #[error("`{path}` cannot be {}: {why}", .action)]
    Refused {
        /// The file.
        path: ProjectPath,
        /// What was to be done.
        action: &'static str,
        /// Why not.
        why: Refused,
    },
    /// It lies too deep.
    #[error("`{0}` lies more than {DEPTH} directories deep")]
    Deep(ProjectPath),
    /// The guest did not come to an end, or did not say what it did.
    #[error("changing `{path}` failed in its sandbox: {what}")]
    Guest {
        /// The file.
        path: ProjectPath,
        /// What happened.
        what: String,
    },
    /// What it left is not what was asked for.
    #[error("changing `{path}` left something else in its sandbox: {what}")]
    Other {
        /// The file.
        path: ProjectPath,
        /// What was found.
        what: String,
    },
    /// It did not run.
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
    /// What it left could not be taken.
    #[error(transparent)]
    Produce(#[from] ProduceError),
}

impl Edit {
    /// The file.
    pub fn path(&self) -> &ProjectPath {
        match self {
            Self::Write { path, .. } | Self::Replace { path, .. } | Self::Delete { path } => path,
        }
    }

    fn action(&self) -> &'static str {
        match self {
            Self::Write { .. } => "written",
            Self::Replace { .. } => "edited",
            Self::Delete { .. } => "deleted",
        }
    }

    /// What can be refused without asking the guest.
    fn check(&self) -> Result<(), EditError> {
        if self.path().components().count() > DEPTH {
            return Err(EditError::Deep(self.path().clone()));
        }
        let longest = match self {
            Self::Write { content, .. } => content.len(),
            Self::Replace { old, new, .. } => old.len().max(new.len()),
            Self::Delete { .. } => 0,
        };
        if longest as u64 > MAX_EDIT_BYTES {
            return Err(self.refused(Refused::TooLarge));
        }
        Ok(())
    }

    fn refused(&self, why: Refused) -> EditError {
        EditError::Refused { path: self.path().clone(), action: self.action(), why }
    }

    fn failed(&self, what: impl ToString) -> EditError {
        EditError::Guest { path: self.path().clone(), what: what.to_string() }
    }
}

impl Workshop {
    /// Changes one file of the project with these layers over it; gives the file as it is then.
    pub fn edit(
        &self,
        layers: &[PathBuf],
        edit: &Edit,
        taking: &Taking<'_>,
    ) -> Result<Produced, EditError> {
        edit.check()?;
        let order = serde_json::to_vec(edit).map_err(|error| edit.failed(error))?;
        let ran = keeping_ahead(edit, taking.blobs, || {
            if let Some(ran) = self.order_ready(layers, &order) {
                return Ok(ran);
            }
            let (config, volume, job) = self.guest(layers, Input::Bytes(order), LIMITS)?;
            self.carry_out(config, Some(volume), job, Arc::new(()))
        })?;
        answered(edit, &ran.outcome)?;
        // What must be there is never left out.
        let taking = Taking { skip: &|_| false, ..*taking };
        let limits = HarvestLimits {
            entries: DEPTH as u64 + 16,
            depth: DEPTH + 1,
            file: ByteSize::from_bytes(3 * MAX_EDIT_BYTES),
            ..HarvestLimits::default()
        };
        the_one(edit, produce(ran.volume.as_ref(), &limits, &taking)?)
    }

    /// The guest that changes a file of the project with these layers over it, and where it leaves the file.
    pub(super) fn guest(
        &self,
        layers: &[PathBuf],
        order: Input,
        limits: Limits,
    ) -> Result<(Config, Volume, Job), WorkshopError> {
        let volume = self.options.runtime.volume(Store::Memory)?;
        let mut job = Job::guest(self.program(), "file-host");
        job.stdin = order;
        let config = Config::of(Template::CodeExecutor).narrowed_to(limits);
        let config = config.showing(self.program())?.with_workspace(Workspace {
            at: self.project().to_owned(),
            layers: self.all_layers(layers),
            changes: Changes::Overlay(volume.clone()),
        })?;
        Ok((config, volume, job))
    }
}

/// Does something while a content that will be produced, if all goes well, is on its way to the disk: neither waits for
/// the other. It is kept as anything is that a job leaves, before it is judged.
fn keeping_ahead<T>(edit: &Edit, blobs: &Blobs, work: impl FnOnce() -> T) -> T {
    let Edit::Write { content, .. } = edit else { return work() };
    std::thread::scope(|scope| {
        let keep = || blobs.put(content.as_bytes(), false);
        // What is not kept now is kept, or found not to be, when it is taken.
        let keeping = std::thread::Builder::new().spawn_scoped(scope, keep);
        let done = work();
        let _kept = keeping.map(std::thread::ScopedJoinHandle::join);
        done
    })
}

/// Whether the guest says that it has done it.
fn answered(edit: &Edit, outcome: &Outcome) -> Result<(), EditError> {
    if outcome.end != End::Exited(0) {
        return Err(edit.failed(&outcome.end));
    }
    match serde_json::from_slice(&outcome.stdout.bytes) {
        Ok(Answer::Done) => Ok(()),
        Ok(Answer::Refused(why)) => Err(edit.refused(why)),
        Err(_) => Err(edit.failed("it did not answer as agreed")),
    }
}

/// The one file that was asked for.
fn the_one(edit: &Edit, taken: Taken) -> Result<Produced, EditError> {
    let other = |what: String| EditError::Other { path: edit.path().clone(), what };
    if let Some(refused) = taken.refused.first() {
        return Err(other(format!("`{}`: {}", refused.name, refused.why)));
    }
    let [produced] = <[Produced; 1]>::try_from(taken.produced)
        .map_err(|found| other(format!("{} files", found.len())))?;
    let fits = match (edit, &produced) {
        (Edit::Write { path, content }, Produced::File(at, stored)) => {
            path == at && stored.digest == Digest::of(content.as_bytes())
        }
        (Edit::Replace { path, .. }, Produced::File(at, _))
        | (Edit::Delete { path }, Produced::Nothing(at)) => path == at,
        (Edit::Write { .. } | Edit::Replace { .. }, Produced::Nothing(_))
        | (Edit::Delete { .. }, Produced::File(..)) => false,
    };
    if fits { Ok(produced) } else { Err(other(format!("{produced:?}"))) }
}
