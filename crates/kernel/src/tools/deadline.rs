//! An end to searches, however many files and however costly the pattern.

use std::sync::Arc;

use fluffy_base::Clock;

use crate::ToolError;

/// How long a search may take.
const MAX_MS: u64 = 20_000;

/// When a search must be done.
pub(super) struct Deadline {
    clock: Arc<dyn Clock>,
    end: u64,
}

impl Deadline {
    /// Some seconds from now. The clock decides whether there is an answer, never which.
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), end: clock.now_ms().saturating_add(MAX_MS) }
    }

    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        self.clock.now_ms() > self.end
    }

    /// What to say then.
    pub(super) fn error() -> ToolError {
        ToolError(format!(
            "the search took more than {} s; name a directory by `path` or make the pattern simpler",
            MAX_MS / 1000
        ))
    }
}
