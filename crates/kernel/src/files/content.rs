//! What the session made of a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use serde::{Deserialize, Serialize};

/// A file's contents, which [`Blobs`](super::Blobs) keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The hash of its bytes.
    pub digest: Digest,
    /// How many there are.
    pub bytes: u64,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// What stands at a path once the session's changes are laid over the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Staged {
    /// Nothing, whatever the project has there.
    Deleted,
    /// This file.
    File(Stored),
}

/// Everything the session changed, by path. Cheap to copy: a view keeps what it began with while the
/// session goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StagedFiles(pub(crate) Arc<BTreeMap<ProjectPath, Staged>>);

impl FromIterator<(ProjectPath, Staged)> for StagedFiles {
    fn from_iter<I: IntoIterator<Item = (ProjectPath, Staged)>>(files: I) -> Self {
        Self(Arc::new(files.into_iter().collect()))
    }
}

impl StagedFiles {
    /// What was made of one path, if it was changed.
    pub fn get(&self, path: &ProjectPath) -> Option<Staged> {
        self.0.get(path).copied()
    }

    /// Every change, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&ProjectPath, Staged)> {
        self.0.iter().map(|(path, staged)| (path, *staged))
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
