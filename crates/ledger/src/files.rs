//! The ledger's files: the one place that makes, writes, moves and removes them.
//!
//! Everything is private to the user: directories 0700, files 0600.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::LedgerError;

/// Makes a private directory and those above it.
pub(crate) fn make_dir(path: &Path) -> Result<(), LedgerError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(LedgerError::file("make directory", path))
}

/// Reads a small text file; `None` where there is none. What is not text, or a link, reads as
/// something that nobody wrote.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Option<String>, LedgerError> {
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Ok(Some(String::new()));
        }
        Err(source) => return Err(LedgerError::file("read", path)(source)),
    };
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(LedgerError::file("read", path))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Replaces a file by way of a new one beside it, so that readers see the old or the new text.
pub(crate) fn replace(path: &Path, text: &[u8], durability: Durability) -> Result<(), LedgerError> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut file = private(&new).map_err(LedgerError::file("write", &new))?;
    file.write_all(text).map_err(LedgerError::file("write", &new))?;
    // Content before name: after a power cut the name stands for the old text or the new one, never
    // for a file that is still empty.
    file.sync_data().map_err(LedgerError::file("sync", &new))?;
    rename(&new, path)?;
    if durability == Durability::Synced { sync_parent(path) } else { Ok(()) }
}

/// Whether a replaced file is the new one after a power cut, or may still be the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The new one.
    Synced,
    /// Either.
    Written,
}

/// Opens a regular file for reading; never a link, a pipe or a device.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    // Without NONBLOCK, opening a pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => {
            Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }
}

/// Opens an empty private file for writing.
pub(crate) fn private(path: &Path) -> std::io::Result<File> {
    step();
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Moves a file.
#[expect(clippy::disallowed_methods, reason = "the one place that moves the ledger's files")]
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), LedgerError> {
    step();
    std::fs::rename(from, to).map_err(LedgerError::file("move", from))
}

/// Removes a file; one that is not there is fine.
#[expect(clippy::disallowed_methods, reason = "the one place that removes the ledger's files")]
pub(crate) fn remove(path: &Path) -> Result<(), LedgerError> {
    step();
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LedgerError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Makes a new or moved file's name durable.
pub(crate) fn sync_parent(path: &Path) -> Result<(), LedgerError> {
    step();
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(LedgerError::file("sync directory", parent))
}

/// The names in a directory, sorted; none where there is no directory.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, LedgerError> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(LedgerError::file("list", dir)(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(LedgerError::file("list", dir))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// A moment between two operations on files, at which a process may die. Tests look at what is on disk
/// at each of them.
#[cfg(not(test))]
pub(crate) fn step() {}
#[cfg(test)]
pub(crate) use watched::step;

#[cfg(test)]
pub(crate) mod watched {
    use std::cell::RefCell;

    thread_local! {
        static WATCHER: RefCell<Option<Box<dyn FnMut()>>> = RefCell::default();
    }

    /// Calls the watcher of this thread, if there is one.
    pub(crate) fn step() {
        WATCHER.with_borrow_mut(|watcher| {
            if let Some(watcher) = watcher {
                watcher();
            }
        });
    }

    /// Runs `work` with `watcher` called at every step.
    pub(crate) fn during<T>(watcher: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
        WATCHER.set(Some(Box::new(watcher)));
        let done = work();
        WATCHER.set(None);
        done
    }
}

/// A lock that lasts as long as the value, and no longer than the process.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Self, LedgerError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(LedgerError::file("open", path))?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                return Err(LedgerError::file("lock", path)(error.into()));
            }
            let mut pid = String::new();
            file.take(32).read_to_string(&mut pid).map_err(LedgerError::file("read", path))?;
            return Err(LedgerError::Locked { pid: pid.trim().to_owned() });
        }
        file.set_len(0).map_err(LedgerError::file("write", path))?;
        writeln!(file, "{}", std::process::id()).map_err(LedgerError::file("write", path))?;
        Ok(Self { _file: file })
    }
}
