//! The socket as a file: made private, and by one kernel at a time.
//!
//! **Invariant.** The directory is the user's own, closed to all others and no link; the socket never exists with
//! more than mode 0600. A socket that nobody listens on any more is replaced only by the holder of the lock
//! beside it, who holds it as long as it listens.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, mkdir, open,
    openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

/// How many may wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening socket and, where [`listen`] made it, the lock that goes with it. Dropping it removes the socket.
pub struct Listener {
    socket: UnixListener,
    file: Option<SocketFile>,
}

impl Listener {
    /// The socket itself.
    pub(super) fn socket(&self) -> &UnixListener {
        &self.socket
    }
}

/// A socket that somebody else made and guards.
impl From<UnixListener> for Listener {
    fn from(socket: UnixListener) -> Self {
        Self { socket, file: None }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // One that stays is replaced by the next kernel.
            let _stays = unlinkat(&file.directory, &file.name, AtFlags::empty());
        }
    }
}

/// The name of a socket, and the right to it.
struct SocketFile {
    directory: OwnedFd,
    name: PathBuf,
    _lock: OwnedFd,
}

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another kernel listens there.
    #[error("another kernel already listens on `{0}`")]
    AlreadyRunning(PathBuf),
    /// The path has no directory or no name.
    #[error("`{0}` does not name a socket in a directory")]
    Path(PathBuf),
    /// The directory is not private.
    #[error("`{path}` must be a directory of your own with mode 0700: {problem}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What it is instead.
        problem: &'static str,
    },
    /// Something else has the name.
    #[error("`{0}` is no socket and stays as it is")]
    Occupied(PathBuf),
    /// The system said no.
    #[error("cannot {what} `{path}`")]
    System {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl ListenError {
    fn system(what: &'static str, path: &Path) -> impl FnOnce(Errno) -> Self {
        move |error| Self::System { what, path: path.to_owned(), source: error.into() }
    }
}

/// Listens on a socket at `path`, whose directory is made if need be.
pub fn listen(path: &Path) -> Result<Listener, ListenError> {
    let (parent, name) = parts(path)?;
    match mkdir(parent, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(ListenError::system("make directory", parent)(error)),
    }
    let directory = private_directory(parent)?;
    let lock = lock(&directory, name, path)?;
    remove_stale(&directory, name, path)?;
    let socket = bound(&directory, name).map_err(ListenError::system("listen on", path))?;
    let made = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(ListenError::system("look at", path))?;
    if permissions(&made) & 0o177 != 0 {
        return Err(ListenError::system("make private", path)(Errno::PERM));
    }
    let file = SocketFile { directory, name: name.into(), _lock: lock };
    Ok(Listener { socket: socket.into(), file: Some(file) })
}

/// Directory and name of a socket.
pub(super) fn parts(path: &Path) -> Result<(&Path, &OsStr), ListenError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name();
    parent.zip(name).ok_or_else(|| ListenError::Path(path.to_owned()))
}

/// Opens a directory that is this user's own and nobody else's.
pub(super) fn private_directory(path: &Path) -> Result<OwnedFd, ListenError> {
    let refused = |problem| ListenError::Directory { path: path.to_owned(), problem };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let directory = match open(path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(refused("it is a link or no directory")),
        Err(error) => return Err(ListenError::system("open", path)(error)),
    };
    let stat = fstat(&directory).map_err(ListenError::system("look at", path))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(refused("it is another user's"));
    }
    if permissions(&stat) & 0o077 != 0 {
        return Err(refused("others may enter it"));
    }
    Ok(directory)
}

/// The name of a socket in an open directory, which fits into an address however long the directory's is, and which
/// nobody can point elsewhere.
pub(super) fn address(directory: impl AsFd, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(directory.as_fd().as_raw_fd().to_string()).join(name)
}

fn permissions(stat: &Stat) -> u32 {
    Mode::from_raw_mode(stat.st_mode).bits()
}

/// Takes the lock beside the socket. The lock's file stays: removing it would let two hold it.
fn lock(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<OwnedFd, ListenError> {
    let mut lock_name = name.to_owned();
    lock_name.push(".lock");
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = openat(directory, &lock_name, flags, Mode::RUSR | Mode::WUSR)
        .map_err(ListenError::system("open the lock of", path))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(ListenError::AlreadyRunning(path.to_owned())),
        Err(error) => Err(ListenError::system("lock", path)(error)),
    }
}

/// Removes a socket that a dead kernel left; only the holder of the lock calls this.
fn remove_stale(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), ListenError> {
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(ListenError::system("look at", path)(error)),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(ListenError::Occupied(path.to_owned()));
    }
    unlinkat(directory, name, AtFlags::empty()).map_err(ListenError::system("replace", path))
}

fn bound(directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the mode of the socket: it is never there with a wider one.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(address(directory, name))?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}
