//! Runs something once more and compares.
//!
//! **Invariant.** What is run again is what the ledger proves was run; it is judged as if it were new.

use fluffy_kernel::Kernel;

use super::{ExecutionRecord, Finished, RunError, RunOrder, Runs};

/// How a replay compares with the run before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both gave the same, or both failed.
    Same,
    /// They gave different things, or one failed.
    Different,
}

/// A run that was run again.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The run before.
    pub before: ExecutionRecord,
    /// The run now.
    pub now: Finished,
    /// How they compare.
    pub comparison: Comparison,
}

impl Runs {
    /// What the ledger proves of a run.
    pub fn execution(&self, id: &str) -> Result<ExecutionRecord, RunError> {
        let found = self.options.shelf.execution(id)?;
        serde_json::from_value(found.record)
            .map_err(|error| RunError::Unreadable(id.to_owned(), error))
    }

    /// Runs again what was run, with the same input.
    pub fn replay(&self, kernel: &Kernel, execution: &str) -> Result<Replayed, RunError> {
        let before = self.execution(execution)?;
        if before.input.masked {
            return Err(RunError::Masked(execution.to_owned()));
        }
        let input = before.input.load(self.options.shelf.artifacts())?;
        let order = RunOrder {
            parent: Some(before.execution.clone()),
            ..RunOrder::new(before.skill.clone(), input)
        };
        let now = self.run(kernel, order)?;
        let hash = |record: &ExecutionRecord| record.output.as_ref().map(|kept| kept.sha256);
        let comparison = if hash(&before) == hash(&now.record) {
            Comparison::Same
        } else {
            Comparison::Different
        };
        Ok(Replayed { before, now, comparison })
    }
}
