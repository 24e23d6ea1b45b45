//! What a build asks of the shelf, and how it brings back what was verified.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::{Journal, Tree};

use super::copy_back::{CopyBack, CopyBackError, copy_back};
use super::{BuildError, patch_of};
use crate::{ArtifactKind, BuildEnd, Proposal, Shelf, Skill, SkillEntry, SkillName};

/// Where a build's artifacts and entries go.
pub trait Shelving {
    /// What is to be built next: the proposal, the number of the attempt, and the build that it tries again.
    fn next(&self, name: &SkillName) -> Result<Next, ShelvingError>;
    /// Keeps an artifact for good.
    fn keep(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Digest, ShelvingError>;
    /// An artifact, held against its hash.
    fn artifact(&self, digest: &Digest) -> Result<Vec<u8>, ShelvingError>;
    /// Writes an entry into the ledger, if it is legal where the skill stands.
    fn record(&self, entry: SkillEntry) -> Result<(), ShelvingError>;
}

/// Why something is not kept, had or recorded.
pub type ShelvingError = Box<dyn std::error::Error + Send + Sync>;

/// What is to be built.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// What was proposed.
    pub proposal: Proposal,
    /// Which attempt it is.
    pub number: u32,
    /// The build that it tries again.
    pub parent: Option<String>,
}

/// The shelf, with what it records to.
#[derive(Clone, Copy)]
pub struct Shelved<'a> {
    /// The shelf.
    pub shelf: &'a Shelf,
    /// What remembers.
    pub journal: &'a dyn Journal,
}

impl Shelving for Shelved<'_> {
    fn next(&self, name: &SkillName) -> Result<Next, ShelvingError> {
        let skill = self.shelf.skill(name)?;
        // An attempt follows one for the same proposal; a new proposal begins anew.
        let parent = skill.last_build().filter(|build| build.proposal == skill.proposal.id);
        let parent = parent.map(|build| build.attempt.build.clone());
        Ok(Next { number: skill.next_attempt(), parent, proposal: skill.proposal.spec })
    }

    fn keep(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Digest, ShelvingError> {
        Ok(self.shelf.artifacts().put(kind, bytes)?)
    }

    fn artifact(&self, digest: &Digest) -> Result<Vec<u8>, ShelvingError> {
        Ok(self.shelf.artifacts().get(digest)?)
    }

    fn record(&self, entry: SkillEntry) -> Result<(), ShelvingError> {
        self.shelf.record(self.journal, &entry)?;
        Ok(())
    }
}

/// Why what was verified is not in the project.
#[derive(Debug, thiserror::Error)]
pub enum BringError {
    /// It has not passed the gates.
    #[error("skill `{0}` is not verified: nothing of it is brought into the project")]
    Unverified(SkillName),
    /// What the build changed cannot be told.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It cannot be brought.
    #[error(transparent)]
    CopyBack(#[from] CopyBackError),
}

/// Brings the files of a skill that passed the gates into the project: after its verification, and again at any time
/// later, since what is there already is done. `dir` is kept for this alone.
pub fn bring(
    shelf: &dyn Shelving,
    skill: &Skill,
    tree: &Arc<Tree>,
    dir: &Path,
) -> Result<Vec<ProjectPath>, BringError> {
    let unverified = || BringError::Unverified(skill.name.clone());
    let verified = skill.verification().ok_or_else(unverified)?;
    let ended = skill.last_build().filter(|build| build.attempt.build == verified.build);
    let ended = ended.and_then(|build| build.ended.as_ref()).ok_or_else(unverified)?;
    let BuildEnd::Built { files } = &ended.end else { return Err(unverified()) };
    let patch = patch_of(shelf, &ended.log)?;
    let bytes = |digest: &Digest| shelf.artifact(digest).map_err(|error| error.to_string());
    let order = CopyBack { tree, dir, files, patch: &patch, bytes: &bytes };
    Ok(copy_back(&order)?)
}
