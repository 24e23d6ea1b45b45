//! One change of the session's files, as the ledger keeps it.

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};

use crate::files::{Staged, Stored};

/// Files that changed together, because of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its number: greater than that of every step before it.
    pub number: u64,
    /// The request that made it.
    pub origin: String,
    /// Every file that changed, in the order of their paths, each once.
    pub changes: Vec<StepChange>,
}

/// What a step made of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepChange {
    /// Which.
    pub path: ProjectPath,
    /// What was staged there; nothing, and the project's file showed through.
    pub before: Option<Staged>,
    /// What the project had there when the path came to be staged.
    pub base: Base,
    /// What is staged there now; nothing, and the project's file shows through again.
    pub after: Option<Staged>,
}

/// What the project had at a path before the session changed it; the bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// No file.
    Absent,
    /// This file.
    File(Stored),
}

impl Base {
    /// The file, if there was one.
    pub fn file(&self) -> Option<Stored> {
        match self {
            Self::Absent => None,
            Self::File(stored) => Some(*stored),
        }
    }
}

impl From<Option<Stored>> for Base {
    fn from(file: Option<Stored>) -> Self {
        file.map_or(Self::Absent, Self::File)
    }
}
