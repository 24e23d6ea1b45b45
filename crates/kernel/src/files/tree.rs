//! The project by handle: what was checked is what is opened.
//!
//! **Invariant.** Everything is opened beneath the root's handle and no link is followed, not even one that
//! stays inside: rules judge the path that was asked for, and a link would make another file of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use fluffy_base::{Excerpt, ProjectPath};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// The project's directory.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    path: PathBuf,
}

/// What stands at a path of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File {
        /// Its size.
        bytes: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// Why a path of the project could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    Missing(ProjectPath),
    /// It is a link, or leads through one.
    #[error("`{path}` is, or leads through, a symbolic link{target}, and links are not followed")]
    Link {
        /// The path.
        path: ProjectPath,
        /// Where the link leads, in words; empty where that is not known.
        target: String,
    },
    /// A directory or something stranger, where a file is wanted.
    #[error("`{0}` is not a regular file")]
    NotAFile(ProjectPath),
    /// A file or something stranger, where a directory is wanted.
    #[error("`{0}` is not a directory")]
    NotADirectory(ProjectPath),
    /// It became something else while it was looked at, or went away.
    #[error("`{0}` changed while it was read")]
    Changed(ProjectPath),
    /// A file that is larger than the caller wants.
    #[error("`{path}` has more than {max} bytes")]
    Large {
        /// The path.
        path: ProjectPath,
        /// How many are wanted at most.
        max: u64,
    },
    /// More files than anybody wants to look at.
    #[error("there are more than {0} files")]
    TooMany(usize),
    /// The operating system refused.
    #[error("`{path}` cannot be opened")]
    Io {
        /// The path; `.` for the root.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

impl TreeError {
    /// The same of something that was there a moment ago.
    pub(super) fn after_a_look(self) -> Self {
        match self {
            Self::Missing(path) | Self::NotADirectory(path) | Self::Link { path, .. } => {
                Self::Changed(path)
            }
            Self::NotAFile(_)
            | Self::Changed(_)
            | Self::Large { .. }
            | Self::TooMany(_)
            | Self::Io { .. } => self,
        }
    }

    /// Whether the reason may be gone in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Changed(_) => true,
            Self::Io { source, .. } => matches!(
                Errno::from_io_error(source),
                Some(
                    Errno::INTR
                        | Errno::AGAIN
                        | Errno::BUSY
                        | Errno::STALE
                        | Errno::TIMEDOUT
                        | Errno::MFILE
                        | Errno::NFILE
                )
            ),
            Self::Missing(_)
            | Self::Link { .. }
            | Self::NotAFile(_)
            | Self::NotADirectory(_)
            | Self::Large { .. }
            | Self::TooMany(_) => false,
        }
    }
}

impl Tree {
    /// The project in this directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { root, path: path.to_owned() })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root's handle.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// What stands at a path, if anything does.
    pub fn look(&self, path: &ProjectPath) -> Result<Option<Found>, TreeError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = CONFINED.difference(ResolveFlags::NO_SYMLINKS);
        // The last component may be a link, and then it is seen as one; the parents may not.
        let at = match path.parent() {
            None => rustix::fs::openat2(&self.root, path.as_str(), flags, Mode::empty(), resolve),
            Some(parent) => match self.directory(Some(&parent)) {
                Ok(directory) => {
                    let name = path.file_name();
                    rustix::fs::openat2(&directory, name, flags, Mode::empty(), resolve)
                }
                Err(TreeError::Missing(_) | TreeError::NotADirectory(_)) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        match at {
            Ok(file) => self.found(&file, path).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(self.failed(path, errno)),
        }
    }

    /// A regular file, for reading.
    pub fn file(&self, path: &ProjectPath) -> Result<File, TreeError> {
        // Neither a pipe nor a device makes us wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(&self.root, path.as_str(), flags, Mode::empty(), CONFINED)
            .map_err(|errno| self.failed(path, errno))?;
        match self.found(&file, path)? {
            Found::File { .. } => Ok(File::from(file)),
            Found::Directory | Found::Link | Found::Special => {
                Err(TreeError::NotAFile(path.clone()))
            }
        }
    }

    /// A directory, for reading its names; none is the root.
    pub fn directory(&self, path: Option<&ProjectPath>) -> Result<OwnedFd, TreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let name = path.map_or(".", ProjectPath::as_str);
        rustix::fs::openat2(&self.root, name, flags, Mode::empty(), CONFINED).map_err(
            |errno| match (path, errno) {
                (Some(path), Errno::NOTDIR) => TreeError::NotADirectory(path.clone()),
                (Some(path), errno) => self.failed(path, errno),
                (None, errno) => TreeError::Io { path: ".".to_owned(), source: errno.into() },
            },
        )
    }

    fn found(&self, file: &OwnedFd, path: &ProjectPath) -> Result<Found, TreeError> {
        stat(file, "", AtFlags::EMPTY_PATH).map_err(|errno| self.failed(path, errno))
    }

    fn failed(&self, path: &ProjectPath, errno: Errno) -> TreeError {
        match errno {
            Errno::NOENT | Errno::NOTDIR => TreeError::Missing(path.clone()),
            Errno::LOOP => TreeError::Link { path: path.clone(), target: self.target(path) },
            errno => TreeError::Io { path: path.to_string(), source: errno.into() },
        }
    }

    /// Where the first link on the way to a path leads.
    fn target(&self, path: &ProjectPath) -> String {
        let mut way: Vec<_> =
            std::iter::successors(Some(path.clone()), ProjectPath::parent).collect();
        way.reverse();
        for at in way {
            if let Ok(target) = rustix::fs::readlinkat(&self.root, at.as_str(), Vec::new()) {
                let target = target.to_string_lossy().into_owned();
                return format!(" (`{at}` leads to `{}`)", Excerpt::new(&target, 100));
            }
        }
        String::new()
    }
}

/// What a name in a directory is; a link is seen as one.
pub(super) fn found_by(directory: &OwnedFd, name: &str) -> Result<Found, Errno> {
    stat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn stat(at: &OwnedFd, name: &str, flags: AtFlags) -> Result<Found, Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::SIZE;
    let stat = rustix::fs::statx(at, name, flags, wanted)?;
    Ok(match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::RegularFile => {
            Found::File { bytes: stat.stx_size, executable: stat.stx_mode & 0o100 != 0 }
        }
        FileType::Directory => Found::Directory,
        FileType::Symlink => Found::Link,
        _special => Found::Special,
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files they read")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    #[test]
    fn links_are_seen_and_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        std::fs::write(dir.path().join("real/a"), "x").unwrap();
        symlink("real/a", dir.path().join("inside")).unwrap();
        symlink("real", dir.path().join("folder")).unwrap();
        symlink("/etc/passwd", dir.path().join("outside")).unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        assert!(matches!(tree.look(&path("real/a")).unwrap(), Some(Found::File { bytes: 1, .. })));
        for name in ["inside", "outside", "folder"] {
            assert_eq!(tree.look(&path(name)).unwrap(), Some(Found::Link), "{name}");
            assert!(matches!(tree.file(&path(name)), Err(TreeError::Link { .. })), "{name}");
        }
        let error = tree.file(&path("folder/a")).unwrap_err().to_string();
        assert!(error.contains("(`folder` leads to `real`)"), "{error}");
        assert!(matches!(tree.look(&path("folder/a")), Err(TreeError::Link { .. })));
        assert!(matches!(tree.file(&path("gone/a")), Err(TreeError::Missing(_))));
        assert_eq!(tree.look(&path("real/a/b")).unwrap(), None);
        assert!(matches!(tree.file(&path("real")), Err(TreeError::NotAFile(_))));
    }
}
