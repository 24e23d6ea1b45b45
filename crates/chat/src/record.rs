//! What the ledger is told of talk: the same as of a run, with no effect.

use fluffy_base::masked;
use serde::{Deserialize, Serialize};

/// The skill that conversation is recorded as.
pub const TALK: &str = "__talk__";

/// The skill that changing a text is recorded as.
pub const TRANSFORM: &str = "__transform__";

/// One answer in words, as the ledger has it. Known secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TalkRecord {
    /// Its id.
    pub execution: String,
    /// [`TALK`] or [`TRANSFORM`].
    pub skill: String,
    /// What it is about, by its id.
    pub parent: Option<String>,
    /// `NONE`: words change nothing.
    pub side_effect: String,
    /// What the person said.
    pub input: String,
    /// What was answered.
    pub output: String,
    /// Who answered: a model by its name, or `template`.
    pub by: String,
    /// Whether there was an answer of whoever was asked.
    pub success: bool,
    /// Why not.
    pub error: Option<String>,
    /// When it began, in milliseconds since the epoch.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
}

impl TalkRecord {
    /// The same without secrets that are known by their look.
    #[must_use]
    pub(crate) fn veiled(mut self) -> Self {
        for text in [&mut self.input, &mut self.output] {
            *text = masked(text).into_owned();
        }
        self.error = self.error.map(|error| masked(&error).into_owned());
        self
    }
}
