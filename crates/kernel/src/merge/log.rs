//! How far a merge has come, in the session's directory.
//!
//! The first line says what is to be done and where the new contents wait; it is on disk before anything
//! else is. The line `decided` is the point of no return: before it a merge is taken back, after it a merge
//! is finished. `done` and `undone` say that there is nothing left to do.
//!
//! **Invariant.** A line that is not whole was not written.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use fluffy_base::{Digest, ProjectPath};
use serde::{Deserialize, Serialize};

use super::MergeError;
use super::disk::Disk;
use super::plan::Operation;

const NAME: &str = "merge.log";
const VERSION: u8 = 1;
const LONGEST: u64 = 256 << 20;
const DECIDED: &[u8] = b"decided\n";
const DONE: &[u8] = b"done\n";
const UNDONE: &[u8] = b"undone\n";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Intent {
    version: u8,
    /// The plan that was agreed to.
    pub(super) plan: Digest,
    pub(super) tasks: Vec<Task>,
    /// Directories that are made for new files, outermost first.
    pub(super) directories: Vec<ProjectPath>,
}

/// One operation, and where its new content waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) operation: Operation,
    pub(super) waits: Option<Waiting>,
}

/// A file beside its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Waiting {
    /// The directory; none is the root.
    pub(super) directory: Option<ProjectPath>,
    pub(super) name: String,
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is under way.
    Over,
    /// Contents may wait; nothing in the project was changed.
    Undecided(Intent),
    /// Some of it may be done.
    Decided(Intent),
}

/// The log, open for writing.
pub(super) struct Log<'a> {
    disk: &'a dyn Disk,
    file: File,
    /// How long the first line is.
    length: u64,
}

impl Intent {
    pub(super) fn new(plan: Digest, tasks: Vec<Task>, directories: Vec<ProjectPath>) -> Self {
        Self { version: VERSION, plan, tasks, directories }
    }

    fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

impl<'a> Log<'a> {
    /// Writes down what is to be done. Nothing else may be under way.
    pub(super) fn begin(
        disk: &'a dyn Disk,
        session: BorrowedFd<'_>,
        intent: &Intent,
    ) -> io::Result<Self> {
        let line = intent.line()?;
        if line.len() as u64 + 100 > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let log = Self { disk, file: disk.append_to(session, NAME)?, length: line.len() as u64 };
        disk.cut(&log.file, 0)?;
        let written = disk.write(&log.file, &line).and_then(|()| disk.sync(log.file.as_fd()));
        if let Err(error) = written.and_then(|()| disk.sync(session)) {
            // Nothing waits yet. If this fails, too, recovering finds that out.
            let _cut = disk.cut(&log.file, 0);
            return Err(error);
        }
        Ok(log)
    }

    /// Opens the log of a merge that was interrupted.
    pub(super) fn resume(
        disk: &'a dyn Disk,
        session: BorrowedFd<'_>,
        intent: &Intent,
    ) -> io::Result<Self> {
        let length = intent.line()?.len() as u64;
        Ok(Self { disk, file: disk.append_to(session, NAME)?, length })
    }

    /// From here on the merge is finished, whatever happens.
    pub(super) fn decide(&self) -> io::Result<()> {
        self.append(DECIDED)
    }

    /// Takes back a decision that may not have reached the disk.
    pub(super) fn reopen(&self) -> io::Result<()> {
        self.disk.cut(&self.file, self.length)?;
        self.disk.sync(self.file.as_fd())
    }

    /// There is nothing left to do.
    pub(super) fn done(&self) -> io::Result<()> {
        self.disk.cut(&self.file, self.length + DECIDED.len() as u64)?;
        self.append(DONE)
    }

    /// The merge was taken back.
    pub(super) fn undone(&self) -> io::Result<()> {
        self.disk.cut(&self.file, self.length)?;
        self.append(UNDONE)
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        self.disk.write(&self.file, line)?;
        self.disk.sync(self.file.as_fd())
    }
}

/// How far the last merge has come.
pub(super) fn progress(disk: &dyn Disk, session: BorrowedFd<'_>) -> Result<Progress, MergeError> {
    let text = match disk.read(session, NAME, LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Progress::Over),
        Err(source) => return Err(MergeError::Log(source)),
    };
    let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
        return Ok(Progress::Over);
    };
    let (first, rest) = text.split_at_checked(end + 1).unwrap_or_default();
    let intent: Intent = serde_json::from_slice(first).map_err(|_| MergeError::Damaged)?;
    if intent.version != VERSION {
        return Err(MergeError::Damaged);
    }
    if let Some(rest) = rest.strip_prefix(DECIDED) {
        return match rest {
            DONE => Ok(Progress::Over),
            rest if DONE.starts_with(rest) => Ok(Progress::Decided(intent)),
            _ => Err(MergeError::Damaged),
        };
    }
    match rest {
        UNDONE => Ok(Progress::Over),
        rest if DECIDED.starts_with(rest) || UNDONE.starts_with(rest) => {
            Ok(Progress::Undecided(intent))
        }
        _ => Err(MergeError::Damaged),
    }
}
