//! Moves what is staged into the project: the only code that writes there.
//!
//! ```text
//! Plan::of        each staged file against what the project has now: take, join, conflict
//! carry_out       1  the log says what will be done                        a crash until here, or an
//!                 2  new contents wait beside their targets, on disk       error: as if nothing had been
//!                 3  every target is still what the plan expects
//!                 ── the log says `decided` ──
//!                 4  deletions, emptied directories, renames               a crash from here on:
//!                 5  the log says `done`                                   `recover` finishes it
//! ```
//!
//! **Invariant.** What a user wrote is never overwritten: a target that is neither what the plan expects nor
//! what it makes of it is left as it is, and said. Both versions exist afterwards.
//!
//! **Invariant.** Nothing outside of the project is touched: everything is done in directories that were opened
//! beneath its handle, and no link is followed.

mod carry;
mod disk;
mod log;
mod plan;
mod three_way;

use std::io;
use std::path::Path;

use fluffy_base::ProjectPath;

use crate::files::{BlobError, Tree};
use crate::staging::{BelowError, FileKind, StagingError};

pub use plan::{Conflict, Operation, Plan};

/// What a merge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// Every file of the plan, deletions first.
    pub files: Vec<MergedFile>,
}

/// What a merge did to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFile {
    /// Which.
    pub path: ProjectPath,
    /// What was to become of it.
    pub kind: FileKind,
    /// What came of that.
    pub outcome: Outcome,
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done now.
    Done,
    /// It was done before the merge was interrupted.
    DoneBefore,
    /// Somebody else changed the file after the decision: theirs is in the project, the session's among its
    /// contents.
    Left,
}

/// What was found of an interrupted merge, and is settled now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// No merge was interrupted.
    Nothing,
    /// One was that had not begun to change these files: the project is as it was.
    Undone(Vec<ProjectPath>),
    /// One was that had: it is finished.
    Finished(Merged),
}

/// Why nothing was merged, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A path cannot be written to as it is.
    #[error("nothing was merged because of `{path}`: {why}")]
    Blocked {
        /// Which.
        path: ProjectPath,
        /// Why not.
        why: &'static str,
    },
    /// A directory has to stay where a file must go.
    #[error("nothing was merged because the directory `{path}` cannot give way to a file")]
    Directory {
        /// The directory.
        path: ProjectPath,
        /// Why not.
        source: BelowError,
    },
    /// Both sides changed files in ways that cannot be joined.
    #[error(
        "nothing was merged: {0} file(s) were changed in the project, too, and cannot be joined"
    )]
    Conflicts(usize),
    /// The project is not what it was when the plan was made.
    #[error("nothing was merged: `{0}` was changed in the project after the plan was made")]
    Changed(ProjectPath),
    /// An earlier merge has to be recovered first.
    #[error("an earlier merge was interrupted and is not recovered yet")]
    Interrupted,
    /// Something failed before the decision. The project is as it was.
    #[error("nothing was merged: {what} failed{}", at(.path))]
    NotBegun {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: Option<ProjectPath>,
        /// Why it failed.
        source: io::Error,
    },
    /// Something failed after the decision, or while a merge was taken back. Recovering completes it.
    #[error("the merge is not complete: {what} failed{}", at(.path))]
    Unfinished {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: Option<ProjectPath>,
        /// Why it failed.
        source: io::Error,
    },
    /// The log cannot be read.
    #[error("the merge's log cannot be read")]
    Log(#[source] io::Error),
    /// The log is none.
    #[error("the merge's log is damaged: somebody else wrote to it")]
    Damaged,
    /// The project cannot be looked at.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// A content cannot be had.
    #[error(transparent)]
    Blob(BlobError),
}

fn at(path: &Option<ProjectPath>) -> String {
    path.as_ref().map_or_else(String::new, |path| format!(" on `{path}`"))
}

/// Carries out a plan. `dir` is the session's directory, in which the plan's contents are kept.
pub fn carry_out(plan: &Plan, tree: &Tree, dir: &Path) -> Result<Merged, MergeError> {
    carry::carry_out(&disk::RealDisk, plan, tree, dir)
}

/// Settles what an interrupted merge left: takes it back if it was not decided, finishes it if it was. May
/// itself be interrupted and repeated.
pub fn recover(tree: &Tree, dir: &Path) -> Result<Recovered, MergeError> {
    carry::recover(&disk::RealDisk, tree, dir)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the user, who writes and moves files")]
mod tests;
