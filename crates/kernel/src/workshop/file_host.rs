//! `fluffy file-host`: changes one file of the project, inside a sandbox.
//!
//! It is given one request on its standard input and gives one answer on its standard output. The project
//! is its working directory, laid over so that nothing it does is done to the project itself.
//!
//! **Invariant.** Every step of a path is taken beneath the handle of the directory before it, and no link is
//! followed: the file that was asked for is the one that changes, or none.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use fluffy_base::ProjectPath;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::edit::Edit;
use super::replace::replaced;

/// The largest file that is changed, and the largest content that is written.
pub const MAX_EDIT_BYTES: u64 = 8 << 20;

/// The largest request: a content all of whose characters are written as escapes, and some words.
const MAX_REQUEST_BYTES: u64 = 3 * 6 * MAX_EDIT_BYTES + (64 << 10);

/// Never out of the workspace, never through a link, never onto another mount.
const CONFINED: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// What became of a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It was done.
    Done,
    /// It was not.
    Refused(Refused),
}

/// Why a file is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// There is nothing.
    #[error("it does not exist")]
    Missing,
    /// It is a link, or there is one on the way.
    #[error("it is, or leads through, a symbolic link, and links are not followed")]
    Link,
    /// It is a directory.
    #[error("it is a directory, and only files are changed, one by one")]
    Directory,
    /// It is a pipe, a socket or a device.
    #[error("it is neither a file nor a directory")]
    Special,
    /// What should be a directory on the way is something else.
    #[error("`{0}` is not a directory")]
    NotADirectory(String),
    /// It is not UTF-8.
    #[error("it is not UTF-8, so that its text cannot be replaced; it can be written as a whole")]
    NotText,
    /// It is too large to be changed.
    #[error("it has more than {MAX_EDIT_BYTES} bytes")]
    TooLarge,
    /// The text to be replaced is empty.
    #[error("the text to be replaced is empty")]
    Empty,
    /// Both texts are one.
    #[error("the text to be replaced and the new text are the same")]
    Same,
    /// The text to be replaced is not in the file.
    #[error("the text to be replaced does not occur in it{like}")]
    Absent {
        /// What is there instead.
        like: Like,
    },
    /// The text to be replaced is there more than once.
    #[error(
        "the text to be replaced occurs {count} times; give more of what is around it, or replace all of them"
    )]
    Ambiguous {
        /// How often.
        count: u64,
    },
    /// The system refused.
    #[error("{0}")]
    System(String),
}

/// How near a text that does not occur comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Like {
    /// It would occur with other line ends.
    LineEnds,
    /// It would occur with other white space.
    WhiteSpace,
    /// It would not.
    Nothing,
}

impl std::fmt::Display for Like {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LineEnds => "; with other line ends (CRLF or LF) it would",
            Self::WhiteSpace => "; with other white space it would",
            Self::Nothing => "",
        })
    }
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::LOOP => Self::Link,
            Errno::ISDIR => Self::Directory,
            errno => Self::System(io::Error::from(errno).to_string()),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::System(error.to_string())
    }
}

/// Answers the one request that comes in, about the directory that this process is in.
pub fn file_host(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut request = Vec::new();
    input.take(MAX_REQUEST_BYTES).read_to_end(&mut request)?;
    let edit: Edit = serde_json::from_slice(&request)?;
    let answer = match carry_out(&edit) {
        Ok(()) => Answer::Done,
        Err(refused) => Answer::Refused(refused),
    };
    output.write_all(&serde_json::to_vec(&answer)?)?;
    output.flush()
}

fn carry_out(edit: &Edit) -> Result<(), Refused> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, ".", flags, Mode::empty())?;
    match edit {
        Edit::Write { path, content } => {
            let parent = parent(root, path, Parents::Made)?;
            match look(&parent, path.file_name()) {
                Ok(()) | Err(Refused::Missing) => {}
                Err(refused) => return Err(refused),
            }
            write(&parent, path, content.as_bytes())
        }
        Edit::Replace { path, old, new, all } => {
            let parent = parent(root, path, Parents::Demanded)?;
            look(&parent, path.file_name())?;
            let text = read(&parent, path)?;
            write(&parent, path, replaced(&text, old, new, *all)?.as_bytes())
        }
        Edit::Delete { path } => {
            let parent = parent(root, path, Parents::Demanded)?;
            look(&parent, path.file_name())?;
            Ok(rustix::fs::unlinkat(&parent, path.file_name(), AtFlags::empty())?)
        }
    }
}

/// What is done about directories that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parents {
    Demanded,
    Made,
}

/// The directory that a file lies in.
fn parent(root: OwnedFd, path: &ProjectPath, parents: Parents) -> Result<OwnedFd, Refused> {
    let Some(parent) = path.parent() else { return Ok(root) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = root;
    for name in parent.components() {
        let open = |at: &OwnedFd| rustix::fs::openat2(at, name, flags, Mode::empty(), CONFINED);
        at = match open(&at) {
            Err(Errno::NOENT) if parents == Parents::Made => {
                rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755))?;
                open(&at)?
            }
            Err(Errno::NOTDIR) => return Err(Refused::NotADirectory(name.to_owned())),
            other => other?,
        };
    }
    Ok(at)
}

/// Whether a regular file is there.
fn look(parent: &OwnedFd, name: &str) -> Result<(), Refused> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(parent, name, flags, Mode::empty(), CONFINED)?;
    kind(&found)
}

fn kind(file: impl AsFd) -> Result<(), Refused> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Refused::Directory),
        FileType::Symlink => Err(Refused::Link),
        _special => Err(Refused::Special),
    }
}

fn read(parent: &OwnedFd, path: &ProjectPath) -> Result<String, Refused> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat2(parent, path.file_name(), flags, Mode::empty(), CONFINED)?;
    let mut bytes = Vec::new();
    File::from(file).take(MAX_EDIT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_EDIT_BYTES {
        return Err(Refused::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| Refused::NotText)
}

/// Writes a file in place: its mode stays what it is.
fn write(parent: &OwnedFd, path: &ProjectPath, content: &[u8]) -> Result<(), Refused> {
    if content.len() as u64 > MAX_EDIT_BYTES {
        return Err(Refused::TooLarge);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = Mode::from_raw_mode(0o644);
    let file = rustix::fs::openat2(parent, path.file_name(), flags, mode, CONFINED)?;
    kind(&file)?;
    Ok(File::from(file).write_all(content)?)
}
