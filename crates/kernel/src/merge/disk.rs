//! Every system call with which a merge changes something or looks at what it changes.
//!
//! They go through one small trait so that a test can let any of them fail, or let the program die there.
//!
//! **Invariant.** Nothing is reached by a path from the root of the file system: names are opened beneath
//! the project's handle without following links, and everything else is done in a directory that was
//! opened so.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// What stands at a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) kind: FileType,
    pub(super) bytes: u64,
    pub(super) mode: u32,
    pub(super) owner: (Uid, Gid),
}

/// What is done to a disk. Each method is one change at most.
pub(super) trait Disk {
    /// Opens a directory beneath another; `.` is the other itself.
    fn directory(&self, at: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd>;
    /// What stands at a name, links not followed; nothing if nothing does.
    fn look(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<Option<Seen>>;
    /// The bytes of a regular file, one more than `limit` at most.
    fn read(&self, at: BorrowedFd<'_>, name: &str, limit: u64) -> io::Result<Vec<u8>>;
    /// Makes a file that was not there.
    fn create(&self, at: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<File>;
    /// Opens a file to be written on at its end; it is made if need be.
    fn append_to(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<File>;
    /// Writes all of the bytes.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;
    /// Cuts a file to a length.
    fn cut(&self, file: &File, length: u64) -> io::Result<()>;
    /// Sets a file's mode.
    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()>;
    /// Gives a file to somebody.
    fn give(&self, file: &File, owner: (Uid, Gid)) -> io::Result<()>;
    /// Waits until a file, or the names in a directory, survive a power cut.
    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()>;
    /// Makes a directory.
    fn make_directory(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()>;
    /// Whether names in a directory may be changed.
    fn may_change(&self, at: BorrowedFd<'_>) -> io::Result<()>;
    /// Moves a file over another.
    fn replace(&self, from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str)) -> io::Result<()>;
    /// Moves a file to where nothing is.
    fn place(&self, from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str)) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()>;
}

/// The real one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn directory(&self, at: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(at, path, flags, Mode::empty(), CONFINED)?)
    }

    fn look(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<Option<Seen>> {
        match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(seen(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn read(&self, at: BorrowedFd<'_>, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        // Neither a pipe nor a device makes us wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(at, name, flags, Mode::empty(), CONFINED)?;
        if seen(&rustix::fs::fstat(&file)?).kind != FileType::RegularFile {
            return Err(Errno::INVAL.into());
        }
        let mut bytes = Vec::new();
        File::from(file).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, at: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(mode);
        Ok(rustix::fs::openat(at, name, flags | OFlags::CLOEXEC, mode)?.into())
    }

    fn append_to(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o600);
        Ok(rustix::fs::openat(at, name, flags | OFlags::CLOEXEC, mode)?.into())
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
    }

    fn give(&self, file: &File, (uid, gid): (Uid, Gid)) -> io::Result<()> {
        Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::fs::fsync(file)?)
    }

    fn make_directory(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755))?)
    }

    fn may_change(&self, at: BorrowedFd<'_>) -> io::Result<()> {
        use rustix::fs::Access;
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        Ok(rustix::fs::accessat(at, ".", wanted, AtFlags::EACCESS)?)
    }

    fn replace(&self, from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str)) -> io::Result<()> {
        Ok(rustix::fs::renameat(from.0, from.1, to.0, to.1)?)
    }

    fn place(&self, from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str)) -> io::Result<()> {
        match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
            // Some file systems cannot be asked; that nothing is there was seen a moment ago.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.replace(from, to),
            other => Ok(other?),
        }
    }

    fn remove(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(at, name, AtFlags::empty())?)
    }

    fn remove_directory(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR)?)
    }
}

fn seen(stat: &Stat) -> Seen {
    Seen {
        kind: FileType::from_raw_mode(stat.st_mode),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o777,
        owner: (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)),
    }
}
