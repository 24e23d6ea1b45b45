//! Reads what a sandbox left in its volume.
//!
//! [`harvest()`] walks the volume once every process of the sandbox is dead, and gives a [`Harvest`]: the
//! changes that may be taken, and by name whatever was refused. Contents are read later, through the
//! harvest. [`patch`] reads the other form of output, unified diffs.
//!
//! Descriptors of a hundred thousand files cannot be kept open, so [`Harvest::read`] opens a file again
//! by its path. That is safe because it opens beneath the same root without following anything, judges
//! what it opened by the same rules, and demands the inode, size, mode and time of change that were
//! seen before: whoever puts something else there in between gets an error.
//!
//! **Invariant.** Only regular files with one name, no special bits and no capabilities are taken, and of
//! them only their bytes and whether they can be executed. Nothing is followed, nothing is opened that
//! is not a regular file or a directory.
//!
//! **Invariant.** Memory is bounded by the limits, whatever lies in the volume; nothing recurses.

mod entry;
pub mod patch;
mod walk;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{BorrowedFd, OwnedFd};

use fluffy_base::{ByteSize, PathError, ProjectPath};

use crate::tree::DEPTH;
use entry::{Device, Identity, Inspector};

/// How the volume was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As the upper layer of an overlay mounted with `userxattr`: deletions and replaced directories
    /// carry the marks of overlayfs, which a job cannot forge through the overlay.
    Overlay,
    /// As a plain directory. There are no deletions, and marks of overlayfs mean nothing.
    Output,
}

/// How much is looked at and taken. All but [`file`](Self::file) end the whole harvest: half of a change
/// is worse than none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HarvestLimits {
    /// Files, directories and deletions that are looked at, refused and skipped ones included.
    pub entries: u64,
    /// Bytes of all their paths together, which is what the walk keeps in memory.
    pub names: ByteSize,
    /// Components of one path.
    pub depth: usize,
    /// Apparent size of one file; what is larger is refused by name.
    pub file: ByteSize,
    /// Apparent size of all files that are taken.
    pub total: ByteSize,
}

impl Default for HarvestLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            names: ByteSize::from_bytes(16 << 20),
            depth: DEPTH,
            file: ByteSize::from_bytes(64 << 20),
            total: ByteSize::from_bytes(1 << 30),
        }
    }
}

/// One thing that a job changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This file has these contents now, whatever was at its path before: nothing, a file or a directory.
    Write(Written),
    /// The file or the whole directory at this path is gone.
    Delete(ProjectPath),
    /// What was at this path, a file or a whole directory, is gone and a new directory took its place;
    /// what the new one holds follows as changes of its own.
    Replace(ProjectPath),
}

/// A file that may be taken; its contents are read through the harvest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    path: ProjectPath,
    identity: Identity,
}

/// Something that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its path on one line that a terminal may show: control and invisible characters as escapes,
    /// bytes that are no text as `\xNN`.
    pub name: String,
    /// Why it is not taken.
    pub why: Why,
}

/// Why something is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// A symbolic link, wherever it points: what it names is decided by whoever follows it.
    #[error("it is a symbolic link, and links are not taken")]
    Symlink,
    /// A named pipe.
    #[error("it is a named pipe")]
    Fifo,
    /// A socket.
    #[error("it is a socket")]
    Socket,
    /// A character or block device.
    #[error("it is a device")]
    Device,
    /// Neither a file nor a directory nor anything else that has a name.
    #[error("it is of an unknown kind")]
    Unknown,
    /// The setuid, setgid or sticky bit is set.
    #[error("its mode {0:04o} has a setuid, setgid or sticky bit")]
    SpecialBits(u16),
    /// It would give its reader capabilities.
    #[error("it has file capabilities")]
    Capabilities,
    /// It has more than one name, and a change through another of them would change it after the check.
    #[error("it has {0} names (hard links)")]
    HardLink(u32),
    /// Its name cannot be that of a file of the project.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Its name is not UTF-8.
    #[error("its name is not UTF-8")]
    NotText,
    /// Its name is spelt with decomposed characters, so that the same text would name another file.
    #[error("its name is not in Unicode's composed form")]
    NotComposed,
    /// Another name in the same directory is the same to a disk that ignores case.
    #[error("another name in its directory differs only in case or spelling")]
    Twin,
    /// Larger than one file may be.
    #[error("it has {} bytes, and {limit} are allowed", size.bytes())]
    TooLarge {
        /// Its apparent size.
        size: ByteSize,
        /// The limit.
        limit: ByteSize,
    },
    /// Its mode keeps us from reading it.
    #[error("it cannot be read")]
    Unreadable,
    /// It lies on another file system than the volume.
    #[error("it lies on another file system")]
    OtherDevice,
    /// It carries a mark of overlayfs that says its contents are elsewhere, or one that is not known.
    #[error("it carries a mark of overlayfs that is not understood")]
    Mark,
    /// It carries more extended attributes than can be listed.
    #[error("it has too many extended attributes")]
    Attributes,
    /// It was replaced while it was looked at.
    #[error("it changed while it was looked at")]
    Changed,
}

/// Why nothing is taken.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// Too many files and directories.
    #[error("the sandbox left more than {0} files and directories")]
    Entries(u64),
    /// Too long names.
    #[error("the names of what the sandbox left take more than {0}")]
    Names(ByteSize),
    /// Too deep.
    #[error("`{path}` lies more than {limit} directories deep")]
    Depth {
        /// The first such path, escaped.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// Too much.
    #[error("the files that the sandbox left take more than {0}")]
    Total(ByteSize),
    /// The volume itself is not a directory that could be harvested.
    #[error("the volume cannot be harvested: {0}")]
    Volume(Why),
    /// The operating system failed.
    #[error("`{path}` in the sandbox's volume cannot be looked at")]
    Io {
        /// What was looked at, escaped; `.` for the volume itself.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

/// Why the contents of a file were not given.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not the file that was checked.
    #[error("`{0}` changed after it was checked")]
    Changed(ProjectPath),
    /// It could not be read.
    #[error("`{path}` cannot be read from the sandbox's volume")]
    Read {
        /// The file.
        path: ProjectPath,
        /// Why not.
        source: io::Error,
    },
    /// It was read, but whoever wanted it did not take it.
    #[error("`{path}` cannot be passed on")]
    Write {
        /// The file.
        path: ProjectPath,
        /// Why not.
        source: io::Error,
    },
}

/// What a sandbox left: what may be taken, and what not. All lists are in the order of their paths, so
/// that a directory that was replaced stands before what it holds.
#[derive(Debug)]
pub struct Harvest {
    root: OwnedFd,
    device: Device,
    kind: Kind,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    changes: Vec<Change>,
    refused: Vec<Refusal>,
    skipped: Vec<ProjectPath>,
}

/// Reads what lies in a volume. `content` is its top directory, which may be an `O_PATH` descriptor and
/// may lie on a file system that is mounted nowhere any more.
///
/// What `skip` says yes to is neither looked at nor walked, only listed: build directories.
///
/// Empty directories are not changes. Modes of directories, owners, times and extended attributes are
/// never taken.
pub fn harvest(
    content: BorrowedFd<'_>,
    kind: Kind,
    limits: &HarvestLimits,
    skip: &dyn Fn(&ProjectPath) -> bool,
) -> Result<Harvest, HarvestError> {
    let root = entry::open_root(content).map_err(|errno| HarvestError::volume(errno.into()))?;
    let stat = entry::look(&root).map_err(|errno| HarvestError::volume(errno.into()))?;
    let device = Device::of(&stat);
    let found = walk::Walk::new(&root, device, kind, limits, skip).run()?;
    Ok(Harvest { root, device, kind, found })
}

impl Harvest {
    /// What may be taken.
    pub fn changes(&self) -> &[Change] {
        &self.found.changes
    }

    /// What is not taken, each with the reason.
    pub fn refused(&self) -> &[Refusal] {
        &self.found.refused
    }

    /// What the caller left out, each directory once.
    pub fn skipped(&self) -> &[ProjectPath] {
        &self.found.skipped
    }

    /// The contents of a file, from the very inode that was checked.
    pub fn read(&self, written: &Written) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::with_capacity(usize::try_from(written.size()).unwrap_or_default());
        self.copy(written, &mut bytes)?;
        Ok(bytes)
    }

    /// Passes the contents of a file on, from the very inode that was checked. On an error, part of
    /// them may have been passed on.
    pub fn copy(&self, written: &Written, into: &mut dyn io::Write) -> Result<(), ReadError> {
        let changed = || ReadError::Changed(written.path.clone());
        let failed = |source| ReadError::Read { path: written.path.clone(), source };
        let file = entry::open_file(&self.root, written.path.as_str()).map_err(|errno| {
            let replaced = entry::why(errno).is_some();
            if replaced { changed() } else { failed(errno.into()) }
        })?;
        let stat = entry::look(&file).map_err(|errno| failed(errno.into()))?;
        let verdict = Inspector::new(self.device, self.kind).file(&file, &stat);
        if verdict.map_err(|errno| failed(errno.into()))? != Ok(written.identity) {
            return Err(changed());
        }
        pass_on(File::from(file), written, into)
    }
}

/// Passes on exactly as many bytes as the check saw, and one look further that there are no more.
fn pass_on(mut file: File, written: &Written, into: &mut dyn io::Write) -> Result<(), ReadError> {
    let failed = |source| ReadError::Read { path: written.path.clone(), source };
    let mut left = written.identity.size;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) if left == 0 => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        left = match left.checked_sub(bytes.len() as u64) {
            Some(left) if count > 0 => left,
            Some(_) | None => return Err(ReadError::Changed(written.path.clone())),
        };
        into.write_all(bytes)
            .map_err(|source| ReadError::Write { path: written.path.clone(), source })?;
    }
}

impl Change {
    /// Where it is.
    pub fn path(&self) -> &ProjectPath {
        match self {
            Self::Write(written) => &written.path,
            Self::Delete(path) | Self::Replace(path) => path,
        }
    }
}

impl Written {
    /// Where it is.
    pub fn path(&self) -> &ProjectPath {
        &self.path
    }

    /// Whether its owner may execute it.
    pub fn executable(&self) -> bool {
        self.identity.executable
    }

    /// Its apparent size in bytes.
    pub fn size(&self) -> u64 {
        self.identity.size
    }
}

impl HarvestError {
    fn volume(source: io::Error) -> Self {
        Self::Io { path: ".".to_owned(), source }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not taken: {}", self.name, self.why)
    }
}
