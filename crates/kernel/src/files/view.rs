//! The project with the session's changes laid over it.
//!
//! **Invariant.** A view shows what the project would be if the changes were made in it: deletions first, then
//! files. A file takes the place of whatever stands in its way, a directory above it included.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Bound;
use std::sync::Arc;

use fluffy_base::ProjectPath;

use super::{BlobError, Blobs, Found, Staged, StagedFiles, Stored, Tree, TreeError};

/// The project as the session sees it, at one moment. The user may work in the project meanwhile: what the
/// session did not change is the project's present state.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) tree: Arc<Tree>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) staged: StagedFiles,
}

/// What the session's changes say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// This file.
    File(Stored),
    /// A directory, since a file of the session's lies beneath it.
    Directory,
    /// Nothing, whatever the project has there.
    Nothing,
    /// What the project has there.
    Project,
}

impl View {
    /// The project with these changes.
    pub fn new(tree: Arc<Tree>, blobs: Arc<Blobs>, staged: StagedFiles) -> Self {
        Self { tree, blobs, staged }
    }

    /// What stands at a path, if anything does.
    pub fn look(&self, path: &ProjectPath) -> Result<Option<Found>, TreeError> {
        match self.over(path) {
            Over::File(stored) => Ok(Some(found(&stored))),
            Over::Directory => Ok(Some(Found::Directory)),
            Over::Nothing => Ok(None),
            Over::Project => self.look_below(path),
        }
    }

    /// A regular file, for reading. One of the session's is compared with its hash first.
    pub fn open(&self, path: &ProjectPath) -> Result<File, TreeError> {
        match self.over(path) {
            Over::File(stored) => self.blobs.open_file(&stored).map_err(|error| kept(path, error)),
            Over::Directory => Err(TreeError::NotAFile(path.clone())),
            Over::Nothing => Err(TreeError::Missing(path.clone())),
            Over::Project => {
                self.tree.file(path).map_err(|error| self.unless_replaced(error, path))
            }
        }
    }

    /// The contents of a regular file of at most `max` bytes; a larger one is refused, never cut.
    pub fn read(&self, path: &ProjectPath, max: u64) -> Result<Vec<u8>, TreeError> {
        let file = self.open(path)?;
        let failed = |source| TreeError::Io { path: path.to_string(), source };
        let expected = file.metadata().map_err(failed)?.len();
        let large = || TreeError::Large { path: path.clone(), max };
        if expected > max {
            return Err(large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
        file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > max { Err(large()) } else { Ok(bytes) }
    }

    /// What the session's changes say about a path.
    pub(super) fn over(&self, path: &ProjectPath) -> Over {
        if self.staged.is_empty() {
            return Over::Project;
        }
        let mut deleted = false;
        for above in above(path) {
            match self.staged.get(&above) {
                Some(Staged::File(_)) => return Over::Nothing,
                Some(Staged::Deleted) => deleted = true,
                None => {}
            }
        }
        match self.staged.get(path) {
            Some(Staged::File(stored)) => return Over::File(stored),
            Some(Staged::Deleted) => deleted = true,
            None => {}
        }
        if self.has_file_beneath(path) {
            Over::Directory
        } else if deleted {
            Over::Nothing
        } else {
            Over::Project
        }
    }

    /// Whether the session deleted this path or one above it, so that nothing of the project's shows there.
    pub(super) fn is_deleted(&self, path: &ProjectPath) -> bool {
        let deleted = |path: &ProjectPath| self.staged.get(path) == Some(Staged::Deleted);
        deleted(path) || above(path).any(|path| deleted(&path))
    }

    /// The session's changes beneath a directory, the root's being all of them.
    pub(super) fn changes_beneath<'a>(
        &'a self,
        directory: Option<&'a ProjectPath>,
    ) -> impl Iterator<Item = (&'a str, Staged)> {
        let map: &BTreeMap<ProjectPath, Staged> = &self.staged.0;
        let from = directory.map_or(Bound::Unbounded, Bound::Excluded);
        let prefix = directory.map_or_else(String::new, |path| format!("{path}/"));
        let length = prefix.len();
        // Between `a` and `a/b` lie `a-b` and `a.b`.
        map.range((from, Bound::Unbounded))
            .skip_while({
                let prefix = prefix.clone();
                move |(path, _)| path.as_str() < prefix.as_str()
            })
            .take_while(move |(path, _)| path.as_str().starts_with(&prefix))
            .map(move |(path, staged)| (path.as_str().get(length..).unwrap_or_default(), *staged))
    }

    /// What the project has at a path that no change says anything about.
    pub(super) fn look_below(&self, path: &ProjectPath) -> Result<Option<Found>, TreeError> {
        match self.tree.look(path) {
            Err(TreeError::Link { .. }) if self.is_replaced_above(path) => Ok(None),
            other => other,
        }
    }

    fn has_file_beneath(&self, path: &ProjectPath) -> bool {
        self.changes_beneath(Some(path)).any(|(_, staged)| matches!(staged, Staged::File(_)))
    }

    /// Whether a link of the project's on the way to this path became a directory of the session's.
    fn is_replaced_above(&self, path: &ProjectPath) -> bool {
        above(path).any(|path| {
            self.has_file_beneath(&path) && matches!(self.tree.look(&path), Ok(Some(Found::Link)))
        })
    }

    fn unless_replaced(&self, error: TreeError, path: &ProjectPath) -> TreeError {
        match error {
            TreeError::Link { .. } if self.is_replaced_above(path) => {
                TreeError::Missing(path.clone())
            }
            other => other,
        }
    }
}

/// What a file of the session's is.
pub(super) fn found(stored: &Stored) -> Found {
    Found::File { bytes: stored.bytes, executable: stored.executable }
}

fn kept(path: &ProjectPath, error: BlobError) -> TreeError {
    TreeError::Io { path: path.to_string(), source: io::Error::other(error) }
}

fn above(path: &ProjectPath) -> impl Iterator<Item = ProjectPath> {
    std::iter::successors(path.parent(), ProjectPath::parent)
}
