//! Where a sandbox's changes go.
//!
//! A volume serves one sandbox and is never used again. In memory it is gone with its last descriptor; on
//! disk it is a directory of the runtime's, removed when the volume is dropped and swept up if the kernel
//! was killed before.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat2, renameat, statat};

use crate::tree::remove_tree;

/// What a volume is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Memory: quick, exactly limited, counted as memory of the sandbox.
    Memory,
    /// Disk: for what does not fit into memory; its limit is watched.
    Disk,
}

/// A place for one sandbox's changes. Copies are the same volume.
#[derive(Debug, Clone)]
pub struct Volume(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    /// The directory on disk, if it is on disk.
    directory: Option<PathBuf>,
    /// Whether a sandbox was started with it.
    served: AtomicBool,
    /// The top directory of what was written; known once a sandbox has it.
    content: OnceLock<OwnedFd>,
}

impl Volume {
    /// A volume in memory, or in a directory that is empty and belongs to nobody else.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        let store = if directory.is_some() { Store::Disk } else { Store::Memory };
        Self::made(store, directory)
    }

    /// A volume that was asked for in this store, of a runtime that keeps all in directories.
    pub(crate) fn in_directory(store: Store, directory: PathBuf) -> Self {
        Self::made(store, Some(directory))
    }

    fn made(store: Store, directory: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            store,
            directory,
            served: AtomicBool::new(false),
            content: OnceLock::new(),
        }))
    }

    /// What it was to be kept in. A runtime that cannot hand memory over keeps both on disk.
    pub fn store(&self) -> Store {
        self.0.store
    }

    /// The top directory of what the sandbox wrote; nothing before it started.
    pub fn content(&self) -> Option<BorrowedFd<'_>> {
        self.0.content.get().map(|content| content.as_fd())
    }

    /// Moves a directory that the sandbox left to `to`, on the same file system. `path` names it from the workspace's top; no
    /// link leads there.
    pub fn take_directory(&self, path: &Path, to: &Path) -> io::Result<()> {
        let content = self.content().ok_or(io::ErrorKind::NotFound)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let above = match path.parent() {
            Some(above) if above != Path::new("") => above,
            _top => Path::new("."),
        };
        let above = openat2(content, above, flags, Mode::empty(), resolve)?;
        let found = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(renameat(&above, name, CWD, to)?)
    }

    /// Its directory, if it is on disk.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.0.directory.as_deref()
    }

    /// Takes it for a sandbox that is about to start. A volume serves once: false if it already does.
    pub(crate) fn serve(&self) -> bool {
        !self.0.served.swap(true, Ordering::Relaxed)
    }

    /// Remembers the top directory; false if one is known already.
    pub(crate) fn fill(&self, content: OwnedFd) -> bool {
        self.0.content.set(content).is_ok()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // What cannot be removed now is swept up with the next start.
            let _left = remove_tree(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn directories_that_nobody_may_enter_are_removed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, volume) = (dir.path().join("kept"), dir.path().join("volume"));
        std::fs::create_dir(&kept).unwrap();
        std::fs::create_dir_all(volume.join("a/b/c")).unwrap();
        std::os::unix::fs::symlink(&kept, volume.join("a/link")).unwrap();
        for closed in ["a/b/c", "a/b", ""] {
            std::fs::set_permissions(volume.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        drop(Volume::new(Some(volume.clone())));
        assert!(!volume.exists());
        assert!(kept.exists());
        remove_tree(&volume).unwrap();
    }
}
