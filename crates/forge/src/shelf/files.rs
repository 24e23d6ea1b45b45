//! The shelf's own files: the one place that makes, writes and names them.
//!
//! Everything in the user's state is private: directories 0700, files 0600. What lies in the project is opened beneath
//! the project's handle, and no link is followed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Makes a private directory and those above it.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A private directory of state, opened.
pub(super) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Reads a private regular file, one byte more than `limit` at most; nothing where nothing is.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    // Neither a pipe nor a device makes us wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    match options.read(true).custom_flags(flags.bits().cast_signed()).open(path) {
        Ok(file) => regular(file, limit).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a private file that nobody may have written before: beside, synced, and linked to its name. One that has the
/// name already stays.
pub(super) fn put_new(dir: &OwnedFd, beside: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    step()?;
    match rustix::fs::unlinkat(dir, beside, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    write_beside(dir, beside, bytes, 0o600)?;
    step()?;
    match rustix::fs::linkat(dir, beside, dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => {}
        // Some file systems have no links.
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match rustix::fs::renameat_with(dir, beside, dir, name, RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(errno) => return Err(errno.into()),
    }
    step()?;
    match rustix::fs::unlinkat(dir, beside, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(rustix::fs::fsync(dir)?)
}

/// A directory of the project, beneath its root, made where it is missing.
pub(super) fn project_dir(root: &Path, names: &[&str]) -> io::Result<OwnedFd> {
    let mut at = open_dir(root)?;
    for name in names {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = match rustix::fs::openat2(&at, *name, flags, Mode::empty(), CONFINED) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&at, *name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                rustix::fs::openat2(&at, *name, flags, Mode::empty(), CONFINED)?
            }
            opened => opened?,
        };
    }
    Ok(at)
}

/// Replaces a file by way of one beside it, so that readers see the old or the new one, never half of either.
pub(super) fn replace(dir: &OwnedFd, beside: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    step()?;
    match rustix::fs::unlinkat(dir, beside, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    write_beside(dir, beside, bytes, 0o644)?;
    step()?;
    rustix::fs::renameat(dir, beside, dir, name)?;
    step()?;
    Ok(rustix::fs::fsync(dir)?)
}

/// Reads a file of a directory, one byte more than `limit` at most; nothing where nothing is.
pub(super) fn read_at(dir: &OwnedFd, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat2(dir, name, flags, Mode::empty(), CONFINED) {
        Ok(file) => regular(File::from(file), limit).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn write_beside(dir: &OwnedFd, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir.as_fd(), name, flags, Mode::from_raw_mode(mode))?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    // Content before name.
    file.sync_all()
}

fn regular(file: File, limit: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A moment at which a process may die. Tests let it die at each of them.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests, any step may fail")]
pub(super) fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(super) use deadly::step;

#[cfg(test)]
pub(super) mod deadly {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// One step, the last one of which fails and all after it.
    pub(in crate::shelf) fn step() -> io::Result<()> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the process died")),
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }

    /// Runs `work`, which dies after so many steps; tells whether it did.
    pub(in crate::shelf) fn after<T>(steps: u64, work: impl FnOnce() -> T) -> (T, bool) {
        LEFT.set(Some(steps));
        let done = work();
        let died = LEFT.replace(None) == Some(0);
        (done, died)
    }
}
