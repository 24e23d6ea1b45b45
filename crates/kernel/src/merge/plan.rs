//! What a merge would do to the project, before it does anything.

use fluffy_base::{Digest, ProjectPath};
use serde::{Deserialize, Serialize};

use crate::files::{Blobs, Found, Staged, Stored, TreeError};
use crate::staging::{Base, Diff, Staging, StagingError, files_below, read};

use super::MergeError;
use super::three_way::{Joined, join};

/// What a merge would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    operations: Vec<Operation>,
    rebased: Vec<ProjectPath>,
    settled: Vec<ProjectPath>,
    conflicts: Vec<Conflict>,
}

/// What a merge would do to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Which.
    pub path: ProjectPath,
    /// What the project has there; if it has anything else, nothing is done.
    pub expected: Base,
    /// What it is to have.
    pub new: Base,
}

/// A file that both the user and the session changed, not to be joined. Both versions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Which.
    pub path: ProjectPath,
    /// What the project had when the session began with it.
    pub base: Base,
    /// What the project has, which stays.
    pub project: Base,
    /// What the session has, which stays, too.
    pub session: Base,
    /// Both in one text with marks, where both are texts.
    pub shown: Option<Vec<u8>>,
}

impl Plan {
    /// What it takes to move everything that is staged into the project as it is now. Looks and keeps
    /// contents; changes nothing.
    pub fn of(staging: &Staging) -> Result<Self, MergeError> {
        let mut plan = Self {
            operations: Vec::new(),
            rebased: Vec::new(),
            settled: Vec::new(),
            conflicts: Vec::new(),
        };
        for (path, staged) in staging.files().iter() {
            let session = match staged {
                Staged::Deleted => Base::Absent,
                Staged::File(stored) => Base::File(stored),
            };
            if session != Base::Absent {
                check_above(staging, path)?;
                check_below(staging, path)?;
            }
            let base = staging.base(path).unwrap_or(Base::Absent);
            plan.add(staging, path.clone(), base, session)?;
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        staging: &Staging,
        path: ProjectPath,
        base: Base,
        session: Base,
    ) -> Result<(), MergeError> {
        let project = present(staging, &path)?;
        if project == session {
            self.settled.push(path);
            return Ok(());
        }
        if project == base {
            self.operations.push(Operation { path, expected: project, new: session });
            return Ok(());
        }
        match joined(staging, base, project, session)? {
            Ok(new) if new == project => self.settled.push(path),
            Ok(new) => {
                self.rebased.push(path.clone());
                self.operations.push(Operation { path, expected: project, new });
            }
            Err(shown) => {
                self.conflicts.push(Conflict { path, base, project, session, shown });
            }
        }
        Ok(())
    }

    /// What would be done, in the order of paths.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Files that the user changed meanwhile, too, and whose changes could be joined. Nobody has seen or
    /// tested the text that would be merged.
    pub fn rebased(&self) -> &[ProjectPath] {
        &self.rebased
    }

    /// Staged files that the project has already.
    pub fn settled(&self) -> &[ProjectPath] {
        &self.settled
    }

    /// Files whose changes cannot be joined. A plan with any is not carried out.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// What would be done, as a text: what the project has now against what it would have. That is what a
    /// person has to see, and not [`Staging::diff`], where a file was joined with a user's change.
    pub fn diff(&self, blobs: &Blobs) -> Result<Diff, MergeError> {
        let changes = self
            .operations
            .iter()
            .map(|Operation { path, expected, new }| (path, expected.file(), new.file()));
        Ok(Diff::between(changes, blobs)?)
    }

    /// A hash of everything that would be done: which files, of what, to what. Whoever agreed to a digest
    /// agreed to exactly this.
    pub fn digest(&self) -> Digest {
        let mut text = b"fluffy merge plan 1\n".to_vec();
        for Operation { path, expected, new } in &self.operations {
            // A path has no line feed, and everything else has a form of its own.
            text.extend_from_slice(path.as_str().as_bytes());
            for side in [expected, new] {
                let side = side.file().map_or_else(
                    || "absent".to_owned(),
                    |file| format!("{} {} {}", file.digest, file.bytes, file.executable),
                );
                text.push(b'\n');
                text.extend_from_slice(side.as_bytes());
            }
            text.push(b'\n');
        }
        Digest::of(&text)
    }
}

/// What the project has at a path, kept.
fn present(staging: &Staging, path: &ProjectPath) -> Result<Base, MergeError> {
    let found = read(staging.tree(), path).map_err(|error| match error {
        StagingError::NotAFile(path) => blocked(path, "it is not a regular file"),
        StagingError::Tree(TreeError::Link { path, .. }) => {
            blocked(path, "it lies behind a symbolic link")
        }
        error => MergeError::Staging(error),
    })?;
    match found {
        None => Ok(Base::Absent),
        Some((bytes, executable)) => {
            Ok(Base::File(staging.blobs().put(&bytes, executable).map_err(MergeError::Blob)?))
        }
    }
}

/// Every directory above a file is one, or will be once the plan's deletions are done.
fn check_above(staging: &Staging, path: &ProjectPath) -> Result<(), MergeError> {
    let mut above: Vec<_> = std::iter::successors(path.parent(), ProjectPath::parent).collect();
    above.reverse();
    for directory in above {
        match staging.tree().look(&directory).map_err(StagingError::Tree)? {
            None => break,
            Some(Found::Directory) => {}
            Some(Found::File { .. })
                if staging.files().get(&directory) == Some(Staged::Deleted) =>
            {
                break;
            }
            Some(Found::File { .. }) => {
                return Err(blocked(directory, "it is a file, and a directory must be there"));
            }
            Some(Found::Link) => return Err(blocked(directory, "it is a symbolic link")),
            Some(Found::Special) => return Err(blocked(directory, "it is not a directory")),
        }
    }
    Ok(())
}

/// A directory where a file must go holds nothing but files that the session deleted.
fn check_below(staging: &Staging, path: &ProjectPath) -> Result<(), MergeError> {
    if staging.tree().look(path).map_err(StagingError::Tree)? != Some(Found::Directory) {
        return Ok(());
    }
    let files = files_below(staging.tree(), path);
    let files = files.map_err(|source| MergeError::Directory { path: path.clone(), source })?;
    match files.iter().find(|file| staging.files().get(file) != Some(Staged::Deleted)) {
        None => Ok(()),
        Some(file) => Err(blocked(
            file.clone(),
            "its directory must give way to a file, and it came meanwhile",
        )),
    }
}

/// Both changes together; where they cannot be joined, what there is to show.
fn joined(
    staging: &Staging,
    base: Base,
    project: Base,
    session: Base,
) -> Result<Result<Base, Option<Vec<u8>>>, MergeError> {
    let (Some(theirs), Some(ours)) = (project.file(), session.file()) else {
        return Ok(Err(None));
    };
    let content = |file: Stored| staging.blobs().get(&file).map_err(MergeError::Blob);
    let before = base.file().map_or(Ok(Vec::new()), content)?;
    match join(&before, &content(theirs)?, &content(ours)?) {
        Joined::NoText => Ok(Err(None)),
        Joined::Conflict(text) => Ok(Err(Some(text))),
        Joined::Clean(text) => {
            let was = base.file().is_some_and(|file| file.executable);
            let executable =
                if ours.executable == was { theirs.executable } else { ours.executable };
            let kept = staging.blobs().put(&text, executable).map_err(MergeError::Blob)?;
            Ok(Ok(Base::File(kept)))
        }
    }
}

fn blocked(path: ProjectPath, why: &'static str) -> MergeError {
    MergeError::Blocked { path, why }
}
