//! Brings verified files into the project, and nothing else.
//!
//! ```text
//! look    every target is what the builder was given, or what it made of it
//! stage   the kept bytes, each held against its hash
//! merge   the kernel's own: logged, decided, renamed, recovered
//! ```
//!
//! **Invariant.** Whatever a person changed after the build stays: a target that is neither what the builder was given
//! nor what it made of it refuses the whole.
//!
//! **Invariant.** It may be interrupted anywhere and called again with the same files: what is there already is done.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::{
    Base, MergeError, Merged, Outcome, Plan, Produced, Staging, StagingError, Tree, carry_out,
    recover,
};

use super::compare::Patch;
use super::copy::Was;
use super::scratch::{Kept, ScratchError};
use crate::Pinned;

/// More than a file of a skill has.
const MAX_BYTES: u64 = 16 << 20;

/// What copying back works on.
#[derive(Clone, Copy)]
pub struct CopyBack<'a> {
    /// The project.
    pub tree: &'a Arc<Tree>,
    /// A directory of its own, kept between calls: what an interrupted one left there is settled first.
    pub dir: &'a Path,
    /// The files that were verified.
    pub files: &'a [Pinned],
    /// What the build changed.
    pub patch: &'a Patch,
    /// The kept bytes of a file.
    pub bytes: &'a dyn Fn(&Digest) -> Result<Vec<u8>, String>,
}

/// Why nothing was brought into the project, or not yet all of it.
#[derive(Debug, thiserror::Error)]
pub enum CopyBackError {
    /// A person changed it.
    #[error(
        "`{0}` was changed in the project after the build, and stays as it is: build again from what is there now"
    )]
    Changed(ProjectPath),
    /// A file's bytes are not kept.
    #[error("the built `{path}` cannot be had: {why}")]
    Lost {
        /// Which.
        path: ProjectPath,
        /// Why not.
        why: String,
    },
    /// The kept bytes are others.
    #[error("the kept bytes of `{0}` are not those that were built")]
    Forged(ProjectPath),
    /// There is no place to work.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// The project cannot be looked at.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// It cannot be written.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

/// Brings the files into the project; says which were not there already.
pub fn copy_back(order: &CopyBack<'_>) -> Result<Vec<ProjectPath>, CopyBackError> {
    let alone = Kept::open(order.dir)?;
    // An interrupted one is finished or taken back before anything is looked at.
    recover(order.tree, order.dir)?;
    let merged = merge(order)?;
    // Nothing of it is needed any more; what stays behind is taken away the next time.
    let _left = alone.empty();
    match merged.files.iter().find(|file| file.outcome == Outcome::Left) {
        Some(file) => Err(CopyBackError::Changed(file.path.clone())),
        None => Ok(merged.files.into_iter().map(|file| file.path).collect()),
    }
}

/// Settles what an interrupted call left, without bringing anything new.
pub fn settle(tree: &Tree, dir: &Path) -> Result<(), CopyBackError> {
    let alone = Kept::open(dir)?;
    recover(tree, dir)?;
    Ok(alone.empty()?)
}

fn merge(order: &CopyBack<'_>) -> Result<Merged, CopyBackError> {
    let mut staging = Staging::open(order.dir, Arc::clone(order.tree))?;
    let mut produced = Vec::new();
    for Pinned { path, sha256 } in order.files {
        if order.patch.before(path).is_none() {
            unchanged(order.tree, path, sha256)?;
            continue;
        }
        let lost = |why| CopyBackError::Lost { path: path.clone(), why };
        let bytes = (order.bytes)(sha256).map_err(lost)?;
        if Digest::of(&bytes) != *sha256 {
            return Err(CopyBackError::Forged(path.clone()));
        }
        let kept = staging.blobs().put(&bytes, executable(order.patch, path));
        produced.push(Produced::File(path.clone(), kept.map_err(StagingError::from)?));
    }
    let Some(step) = staging.prepare("skill", &produced)? else { return Ok(Merged::default()) };
    staging.promote(step)?;
    let plan = Plan::of(&staging)?;
    let planned = plan.operations().iter().map(|operation| (&operation.path, operation.expected));
    let conflicts = plan.conflicts().iter().map(|conflict| (&conflict.path, conflict.project));
    for (path, project) in planned.chain(conflicts) {
        if !is_as_given(order.patch, path, project) {
            return Err(CopyBackError::Changed(path.clone()));
        }
    }
    Ok(carry_out(&plan, order.tree, order.dir)?)
}

/// A file that the build left alone is in the project as it was built with.
fn unchanged(tree: &Tree, path: &ProjectPath, sha256: &Digest) -> Result<(), CopyBackError> {
    let changed = || CopyBackError::Changed(path.clone());
    let file = tree.file(path).map_err(|_| changed())?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|_| changed())?;
    if Digest::of(&bytes) == *sha256 { Ok(()) } else { Err(changed()) }
}

/// Whether the project has what the builder was given.
fn is_as_given(patch: &Patch, path: &ProjectPath, project: Base) -> bool {
    let same = |was: Was| {
        project.file().is_some_and(|it| it.digest == was.sha256 && it.executable == was.executable)
    };
    match patch.before(path) {
        Some(None) => project == Base::Absent,
        Some(Some(before)) => same(before),
        None => false,
    }
}

/// A file stays what it was; a new one is no program.
fn executable(patch: &Patch, path: &ProjectPath) -> bool {
    patch.before(path).flatten().is_some_and(|was| was.executable)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the user, who writes files")]
mod tests;
