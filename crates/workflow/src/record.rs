//! Where the work stands, as it is written down and read back.
//!
//! **Invariant.** What is read back could have been written: a record whose parts do not fit together,
//! or that says more than is known here, is refused.

use fluffy_base::{Json, JsonError};
use serde::{Deserialize, Serialize};

use crate::colour::Red;
use crate::event::Debt;
use crate::run::Outcome;
use crate::state::{Access, Mode, State};
use crate::workflow::{Task, Workflow};

/// The version of the record.
const VERSION: u32 = 1;

/// Why a record is not where some work stands.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not a record at all.
    #[error("the workflow's record cannot be read")]
    Form(#[from] serde_json::Error),
    /// Not JSON that can be kept.
    #[error("the workflow's record is not in normal form")]
    Json(#[from] JsonError),
    /// Of another version.
    #[error("the workflow's record has version {0}, and {VERSION} is the only one known")]
    Version(u32),
    /// Parts that do not fit together.
    #[error("the workflow's record contradicts itself: {0}")]
    Contradiction(&'static str),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    v: u32,
    state: State,
    mode: Mode,
    access: Access,
    debt: Debt,
    task: Task,
}

impl Workflow {
    /// The record of where the work stands.
    pub fn to_record(&self) -> Result<Json, RecordError> {
        let Self { state, mode, access, debt, task } = self.clone();
        let record = Record { v: VERSION, state, mode, access, debt, task };
        Ok(Json::new(serde_json::to_value(record)?)?)
    }

    /// Where the work stands by a record.
    pub fn from_record(record: &Json) -> Result<Self, RecordError> {
        let Record { v, state, mode, access, debt, task } = Record::deserialize(record.value())?;
        if v != VERSION {
            return Err(RecordError::Version(v));
        }
        let workflow = Self { state, mode, access, debt, task };
        match workflow.contradiction() {
            Some(why) => Err(RecordError::Contradiction(why)),
            None => Ok(workflow),
        }
    }

    fn contradiction(&self) -> Option<&'static str> {
        let Task { changes, grants, red, .. } = &self.task;
        let strict = self.mode.is_test_first();
        let wrong = [
            (self.state == State::Idle && self.task != Task::default(), "idle with a task"),
            (self.state == State::CodeWriting && red.is_none(), "code without a failing test"),
            (self.state == State::TestWriting && red.is_some(), "a failing test too early"),
            (red.is_some() && !strict, "a failing test outside of strict mode"),
            (self.state == State::TestWriting && !strict, "tests first outside of strict mode"),
            (self.state == State::RetroactiveTesting && strict, "tests last in strict mode"),
            (strict && self.is_unverified(), "untested changes in strict mode"),
            (
                self.access == Access::ReadOnly && !(changes.is_empty() && grants.is_empty()),
                "changes in a read-only session",
            ),
            (red.as_ref().is_some_and(|red| !is_red(red)), "a failing test that does not fail"),
        ];
        wrong.into_iter().find_map(|(holds, why)| holds.then_some(why))
    }
}

fn is_red(red: &Red) -> bool {
    let fails = |id: &String| red.run.outcome(id) == Some(Outcome::Failed);
    let named = red.run.broken();
    let is_broken = |file| named.is_some_and(|files| files.contains(file));
    let some = !red.failing.is_empty() || !red.broken.is_empty();
    some && red.failing.iter().all(fails) && red.broken.iter().all(is_broken)
}
