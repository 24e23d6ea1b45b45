//! How a run of the loop ended.

use fluffy_provider::ProviderError;

use crate::{AgentError, Cap, Failure, Spent};

/// How a task ended, and what was spent on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// What was spent, what earlier runs spent included.
    pub spent: Spent,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done.
    Completed {
        /// What was done.
        summary: String,
        /// How many turns it took.
        turns: u64,
    },
    /// It did not get to its end.
    Failed(Failure),
    /// Another turn would have passed a cap; it was not asked for.
    CapReached(Cap),
    /// Someone wanted it to stop.
    Cancelled,
    /// The provider did not give a turn.
    Provider(ProviderError),
    /// The bench cannot go on.
    Bench(AgentError),
}

impl Outcome {
    pub(crate) fn failed(what: &str, why: &str, fix: &str) -> Self {
        let (what, why, fix) = (what.to_owned(), why.to_owned(), fix.to_owned());
        Self::Failed(Failure { what, why, fix })
    }
}
