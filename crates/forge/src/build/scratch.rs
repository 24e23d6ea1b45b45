//! The directory in which builds happen: one build at a time, and nothing of it stays.
//!
//! **Invariant.** Whoever holds a [`Scratch`] is alone in it. It is empty when it is had, whatever a killed process left
//! there, and emptied when it is given back.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Says that somebody is at work. It stays, and what counts is who has it locked.
const LOCK: &str = "lock";

/// A directory for one build.
#[derive(Debug)]
pub struct Scratch(Kept);

/// A directory that one at a time works in, and that keeps what is in it.
#[derive(Debug)]
pub(super) struct Kept {
    dir: PathBuf,
    /// Locked until it is dropped.
    _lock: File,
}

/// Why there is no place to build.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// Somebody else builds.
    #[error("another build is under way in this project: wait for its end")]
    Busy,
    /// It cannot be made or emptied.
    #[error("the directory for builds, `{}`, cannot be used", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Scratch {
    /// Takes the directory, which is made if need be, private to the user, and emptied of what an interrupted build left.
    pub fn open(dir: &Path) -> Result<Self, ScratchError> {
        let kept = Kept::open(dir)?;
        kept.empty()?;
        Ok(Self(kept))
    }

    /// A directory in it that is there and empty.
    pub(super) fn make(&self, name: &str) -> Result<PathBuf, ScratchError> {
        let path = self.0.dir.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| ScratchError::Io { path: path.clone(), source })?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now, the next build removes or says that it cannot.
        let _left = self.0.empty();
    }
}

impl Kept {
    /// Takes the directory, which is made if need be, with all that is in it.
    pub(super) fn open(dir: &Path) -> Result<Self, ScratchError> {
        let failed = |source| ScratchError::Io { path: dir.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        let lock = options.open(dir.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(ScratchError::Busy),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Removes everything in it.
    pub(super) fn empty(&self) -> Result<(), ScratchError> {
        empty(&self.dir).map_err(|source| ScratchError::Io { path: self.dir.clone(), source })
    }
}

/// Removes everything in a directory but the lock.
#[expect(clippy::disallowed_methods, reason = "the one place that removes what builds left")]
fn empty(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests leave what a killed build would leave")]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupted_build_left_is_swept_and_two_builds_cannot_meet() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("builds");
        std::fs::create_dir_all(place.join("copy/deep/er")).unwrap();
        std::fs::write(place.join("copy/deep/file"), "left").unwrap();
        std::os::unix::fs::symlink("/etc", place.join("link")).unwrap();
        let names = || {
            let entries = std::fs::read_dir(&place).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
        };
        let scratch = Scratch::open(&place).unwrap();
        assert_eq!(names(), ["lock"]);
        assert!(Path::new("/etc/passwd").exists());
        assert!(matches!(Scratch::open(&place), Err(ScratchError::Busy)));
        scratch.make("copy").unwrap();
        drop(scratch);
        assert_eq!(names(), ["lock"]);
        Scratch::open(&place).unwrap();
    }
}
