//! Why the ledger cannot do what it was asked.

use std::path::PathBuf;

use crate::{CheckpointError, KeyError, RotationError};

/// Why the ledger cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A file or directory of the ledger could not be used.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The database refused an operation.
    #[error("the ledger's database failed while {action}")]
    Database {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: rusqlite::Error,
    },
    /// Another process writes this ledger.
    #[error("another kernel (process {pid}) is writing this ledger")]
    Locked {
        /// Its process id as it wrote it down.
        pid: String,
    },
    /// An earlier write failed; nothing more is accepted, because the chain in memory is ahead of
    /// the chain on disk.
    #[error("the ledger stopped after a failed write: {0}")]
    Stopped(String),
    /// What was found on disk is not an intact ledger.
    #[error("the ledger is damaged: {0}")]
    Damaged(String),
    /// The signing key cannot be used.
    #[error("the ledger's key cannot be used")]
    Key(#[from] KeyError),
    /// A signed checkpoint does not hold.
    #[error("the checkpoint does not hold")]
    Checkpoint(#[from] CheckpointError),
    /// The signing key cannot be replaced like this.
    #[error("the ledger's key cannot be replaced")]
    Rotation(#[from] RotationError),
    /// A record that the database could not hold. It was given no number.
    #[error("a record has at most {limit} bytes, not {bytes}")]
    TooLarge {
        /// As long as it is.
        bytes: usize,
        /// As long as it may be.
        limit: usize,
    },
    /// The machine has no randomness to give.
    #[error("the system gives no random bytes")]
    NoRandomness,
    /// There is no such entry.
    #[error("there is no entry {wanted}: the ledger has {size} entries, numbered from 0")]
    NoSuchEntry {
        /// The number that was asked for.
        wanted: u64,
        /// How many there are.
        size: u64,
    },
    /// An archive does not hold what it should.
    #[error("archive `{file}`, line {line}: {problem}")]
    Archive {
        /// Name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong there.
        problem: String,
    },
    /// Entries whose archive is not there any more.
    #[error("the entries {first} to {last} are not held any more: their archive was deleted")]
    Gone {
        /// Number of the first.
        first: u64,
        /// Number of the last.
        last: u64,
    },
    /// A pattern for redaction is not a glob.
    #[error("`{pattern}` is not a glob: {problem}")]
    Pattern {
        /// The pattern as given.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl LedgerError {
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    pub(crate) fn database(action: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Database { action, source }
    }
}
