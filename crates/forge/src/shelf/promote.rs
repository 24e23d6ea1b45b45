//! A person trusts a skill, or does not any more.
//!
//! **Invariant.** What is promoted is what was verified: the project's files are hashed again, beneath the project's
//! handle and without following links, and the hashes of the verification are those that are promoted.

use std::path::Path;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::{Appended, Journal, Tree, TreeError};

use super::{Shelf, ShelfError};
use crate::seal::{self, Broken};
use crate::{Sealed, SkillEntry, SkillName, SourceFile, Standing};

/// Why the project's files are not what was verified.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The project cannot be opened.
    #[error("the project cannot be opened")]
    Project(#[source] std::io::Error),
    /// A file cannot be opened, or is none.
    #[error(
        "a file of the skill is not there as it was verified: put it back, or revoke the skill and build it again"
    )]
    File(#[from] TreeError),
    /// A file cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// Which.
        path: ProjectPath,
        /// Why not.
        source: std::io::Error,
    },
    /// A file was changed.
    #[error(
        "`{0}` was changed since it was verified: put the verified file back, or revoke the skill and build it again"
    )]
    Changed(ProjectPath),
}

impl Shelf {
    /// Trusts a skill: `by` is the person who agreed, after a review.
    pub fn promote(
        &self,
        journal: &dyn Journal,
        name: &SkillName,
        by: &str,
    ) -> Result<Appended, ShelfError> {
        let skill = self.skill(name)?;
        let Some(verification) =
            skill.verification().filter(|_| skill.standing == Standing::Verified)
        else {
            // Says where it stands and what is needed.
            let (sealed, by) = (Sealed { files: Vec::new(), base: Digest::GENESIS }, by.to_owned());
            let (name, verification) = (name.clone(), String::new());
            let entry = SkillEntry::Promoted { name, verification, sealed, by };
            return self.record(journal, &entry);
        };
        if verification.sealed.base != self.base() {
            return Err(ShelfError::OtherBase(name.clone()));
        }
        read_sealed(self.project(), &verification.sealed)?;
        let entry = SkillEntry::Promoted {
            name: name.clone(),
            verification: verification.id.clone(),
            sealed: verification.sealed.clone(),
            by: by.to_owned(),
        };
        self.record(journal, &entry)
    }

    /// Takes trust back, for a reason.
    pub fn revoke(
        &self,
        journal: &dyn Journal,
        name: &SkillName,
        by: &str,
        why: &str,
    ) -> Result<Appended, ShelfError> {
        let (name, by, why) = (name.clone(), by.to_owned(), why.to_owned());
        self.record(journal, &SkillEntry::Revoked { name, by, why })
    }
}

/// The sealed files of a project, each read once: the bytes that are given are the bytes that were hashed.
pub fn read_sealed(project: &Path, sealed: &Sealed) -> Result<Vec<SourceFile>, SealError> {
    let tree = Tree::open(project).map_err(SealError::Project)?;
    let mut files = Vec::new();
    for pinned in &sealed.files {
        let path = pinned.path.clone();
        let bytes = seal::read(&tree, pinned).map_err(|broken| match broken {
            Broken::File(error) => SealError::File(error),
            Broken::Read(source) => SealError::Read { path: path.clone(), source },
            Broken::Large | Broken::Changed(_) => SealError::Changed(path.clone()),
        })?;
        files.push(SourceFile { path, bytes });
    }
    Ok(files)
}
