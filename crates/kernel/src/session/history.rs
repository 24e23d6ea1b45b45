//! What a person does to a session between its runs: looks at it, takes steps back, gives it up.

use std::sync::Arc;

use super::{Entry, Session, SessionError, StoredSession};
use crate::staging::{Diff, StagingError};

impl Session {
    /// What the session would change in the project.
    pub fn diff(&self) -> Result<Diff, SessionError> {
        Ok(self.desk.look().staging.diff()?)
    }

    /// Goes back to what the session had after a step; 0 is before the first. What is merged stays merged.
    pub fn rewind(&self, to: u64) -> Result<(), SessionError> {
        let known = self.desk.look().staging.steps().iter().any(|step| step.number == to);
        if to != 0 && !known {
            return Err(StagingError::Unknown(to).into());
        }
        self.record(&Entry::Rewound { to })?;
        let id = self.id().to_string();
        let ledger = &self.kernel.ledger;
        let (stored, _proved) =
            StoredSession::prove(ledger.layout(), &ledger.verifying_key(), &id)?;
        let staging = stored.staging(&self.desk.dir, Arc::clone(&self.desk.tree))?;
        self.desk.change().set(|inside| {
            inside.workflow = stored.workflow.clone();
            inside.staging = staging;
        });
        Ok(())
    }

    /// Takes the last step back; gives its number.
    pub fn undo(&self) -> Result<u64, SessionError> {
        let (last, before) = {
            let inside = self.desk.look();
            let mut steps = inside.staging.steps().iter().rev().map(|step| step.number);
            (steps.next(), steps.next())
        };
        let last = last.ok_or(SessionError::NoStep)?;
        self.rewind(before.unwrap_or(0))?;
        Ok(last)
    }
}
