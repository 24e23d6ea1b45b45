//! What a verification can find wrong, and where.

use std::fmt;

use fluffy_base::Digest;

/// A problem and the entry at which it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Number of the entry; `None` where the ledger as a whole is concerned.
    pub seq: Option<u64>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a ledger or a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is damaged as a database.
    #[error("the database is damaged: {0}")]
    Database(String),
    /// Entries are not there.
    #[error("the entries up to {until} are missing")]
    Missing {
        /// The next number that is there.
        until: u64,
    },
    /// The entry's fields, the hash of its detail among them, do not give its hash after the entry
    /// before.
    #[error("the entry's hash is {stored}, but its fields give {computed}")]
    EntryHash {
        /// As stored.
        stored: Digest,
        /// As computed.
        computed: Digest,
    },
    /// The entry does not name the hash of the one before.
    #[error("the entry does not follow the one before it")]
    PrevHash,
    /// The detail's bytes do not give the hash that the entry carries.
    #[error("the entry's detail was changed")]
    DetailHash,
    /// The kept input does not give the hash that the detail names.
    #[error("the entry's kept input was changed")]
    InputHash,
    /// The detail names an input that is not there.
    #[error("the entry's kept input is missing")]
    InputMissing,
    /// A tile of the Merkle tree is missing or differs from what the entries give.
    #[error("the Merkle tree (level {level}) does not match the entries")]
    Tile {
        /// Level of the tile.
        level: u8,
    },
    /// The tree has another entry at this place, or none.
    #[error("the entry is not the one that the tree has at its place")]
    NotInTree,
    /// An archive was changed.
    #[error("archive `{file}`, line {line}: {problem}")]
    Archive {
        /// Name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong there.
        problem: String,
    },
    /// An archive that was recorded is not there, and no entry says that it was deleted.
    #[error("archive `{0}` is missing")]
    ArchiveMissing(String),
    /// Entries that left the database are in no archive, and no entry says that one was deleted.
    #[error("the entries up to {last} are in no archive")]
    ArchivesMissing {
        /// Number of the last.
        last: u64,
    },
    /// Something that belongs to nothing.
    #[error("there is {0}")]
    Stray(&'static str),
    /// The last signed checkpoint is gone.
    #[error("the remembered checkpoint is missing")]
    CheckpointMissing,
    /// The remembered checkpoint is not one that this key signed.
    #[error("the remembered checkpoint is not genuine: {0}")]
    CheckpointForged(String),
    /// The ledger is shorter than it was.
    #[error("the ledger has {found} entries, but had {promised} when it was last signed")]
    Truncated {
        /// Entries there are.
        found: u64,
        /// Entries there were.
        promised: u64,
    },
    /// The ledger's past is not the one that was signed.
    #[error("the first {size} entries are not those that were signed")]
    Rewritten {
        /// How many were signed.
        size: u64,
    },
    /// The whole ledger, or its newest segment, is gone.
    #[error("the ledger itself is missing")]
    LedgerMissing,
    /// The bundle's root is not the hash of its last entry.
    #[error("the root hash is not that of the last entry")]
    RootHash,
    /// The bundle breaks its own format.
    #[error("{0}")]
    Format(String),
    /// A signature does not hold.
    #[error("{0}")]
    Signature(String),
    /// The order of events is not one a kernel produces.
    #[error("{0}")]
    Protocol(String),
}

impl Located {
    /// A problem of the ledger as a whole.
    pub(crate) fn nowhere(problem: Problem) -> Self {
        Self { seq: None, problem }
    }

    /// A problem of one entry.
    pub(crate) fn at(seq: u64, problem: Problem) -> Self {
        Self { seq: Some(seq), problem }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "entry {seq}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}
