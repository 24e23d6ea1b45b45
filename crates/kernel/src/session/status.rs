//! Where a session stands, for whoever looks at it while it works.

use fluffy_workflow::{Access, Mode, State};

use super::Session;
use crate::Grant;

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Where its work stands.
    pub state: State,
    /// How strictly it works.
    pub mode: Mode,
    /// Whether it may write.
    pub access: Access,
    /// How many turns the model had.
    pub turns: u64,
    /// How its coverage stood when it was last measured.
    pub budget: Option<String>,
    /// What is pinned, by path.
    pub pins: Vec<String>,
    /// What the person agreed to for as long as it lasts.
    pub grants: Vec<Grant>,
    /// What was done, if it is.
    pub done: Option<String>,
}

impl Session {
    /// Where it stands. Nothing waits for this, and this waits for nothing.
    pub fn status(&self) -> Status {
        let budget = self.debt();
        let inside = self.desk.look();
        let standing = inside.workflow.standing();
        Status {
            state: standing.state,
            mode: standing.mode,
            access: standing.access,
            turns: self.turns(),
            budget,
            pins: inside.progress.pins.iter().map(|pin| pin.path.to_string()).collect(),
            grants: self.kernel.grants(),
            done: inside.progress.done.clone(),
        }
    }
}
