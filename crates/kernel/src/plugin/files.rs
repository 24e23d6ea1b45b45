//! The plugins' own files in the state: the one place that makes, writes and removes them.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Unpacked;

/// Numbers for names that nobody else in this process uses.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes a private directory and those above it.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether files must outlast a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    /// They are there for one process.
    Briefly,
    /// They are on disk before anybody is told of them.
    Synced,
}

/// A directory of ours, removed with whoever holds it.
#[derive(Debug)]
pub(super) struct OwnDir(PathBuf);

impl OwnDir {
    /// An empty directory in `above`. Whoever sees it sees its files: the user of a sandbox may be somebody else.
    pub(super) fn new(above: &Path, what: &str) -> io::Result<Self> {
        private_dir(above)?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = above.join(format!("{what}-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o755).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // A killed kernel of the same number left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => remove(&path),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes these files into it.
    pub(super) fn fill(&self, files: &[Unpacked], lasting: Lasting) -> io::Result<()> {
        files.iter().try_for_each(|file| {
            let path = self.0.join(file.path.as_str());
            if let Some(above) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o755).create(above)?;
            }
            let mode = if file.executable { 0o755 } else { 0o644 };
            let mut options = OpenOptions::new();
            let mut opened = options.write(true).create_new(true).mode(mode).open(&path)?;
            opened.write_all(&file.bytes)?;
            match lasting {
                Lasting::Briefly => Ok(()),
                Lasting::Synced => opened.sync_all(),
            }
        })
    }

    /// Gives it its name for good; what has the name already is of the same bytes, or found not to be when it is read.
    #[expect(clippy::disallowed_methods, reason = "the one place that names an installed plugin")]
    pub(super) fn named(self, name: &Path) -> io::Result<()> {
        if name.symlink_metadata().is_ok() {
            remove(name);
        }
        std::fs::rename(&self.0, name)
    }
}

impl Drop for OwnDir {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes what is ours, if it is there.
#[expect(clippy::disallowed_methods, reason = "the one place that removes a plugin's files")]
pub(super) fn remove(path: &Path) {
    // What stays is in nobody's way: it is held against its hash before it is used.
    let _gone = std::fs::remove_dir_all(path);
}

/// Removes what processes that died left in a directory of ours.
pub(super) fn sweep(above: &Path) {
    let Ok(entries) = std::fs::read_dir(above) else { return };
    for entry in entries.flatten() {
        remove(&entry.path());
    }
}

/// Reads a small file of ours; nothing where nothing is.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    match OpenOptions::new().read(true).open(path) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a small file of ours by way of one beside it.
#[expect(clippy::disallowed_methods, reason = "the one place that writes the plugins' own notes")]
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
