//! Projects in temporary directories, with changes over them.

#![expect(clippy::disallowed_methods, reason = "tests make the files they read")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::ProjectPath;
use tempfile::TempDir;

use super::{Blobs, Staged, StagedFiles, Tree, View};

/// A project, a place for contents, and views of both.
pub(crate) struct Scene {
    pub(crate) dir: TempDir,
    pub(crate) blobs: Arc<Blobs>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let blobs = Arc::new(Blobs::open(&dir.path().join("blobs")).unwrap());
        Self { dir, blobs }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn has(self, name: &str, text: &str) -> Self {
        write(&self.project(), name, text.as_bytes());
        self
    }

    /// A view with these changes; no text is a deletion.
    pub(crate) fn view(&self, changes: &[(&str, Option<&str>)]) -> View {
        let staged = changes.iter().map(|(name, text)| {
            let staged = match text {
                Some(text) => Staged::File(self.blobs.put(text.as_bytes(), false).unwrap()),
                None => Staged::Deleted,
            };
            (path(name), staged)
        });
        let staged: BTreeMap<_, _> = staged.collect();
        let tree = Arc::new(Tree::open(&self.project()).unwrap());
        View::new(tree, Arc::clone(&self.blobs), StagedFiles(Arc::new(staged)))
    }
}

pub(crate) fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

pub(crate) fn write(root: &Path, name: &str, bytes: &[u8]) {
    let at = root.join(name);
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::fs::write(at, bytes).unwrap();
}
