//! What the session offers the person: debug mode, where the work has failed again and again.
//!
//! **Invariant.** An offer takes nothing. It is the person's own request for the mode, which the gate has answered by a
//! person; whoever cannot be asked, or says no, leaves everything as it was.
//!
//! **Invariant.** A row of failures is one offer, however long it gets: failing is no way to wear a person down.

use fluffy_workflow::{Access, Consent, Event, FAILURES_BEFORE_OFFER, Mode};
use serde_json::{Map, Value, json};

use super::Session;
use super::advance::next_step;

/// Calls by which the work can have failed once more.
const JUDGED: [&str; 2] = ["test.run", "task.complete"];

impl Session {
    /// Offers debug mode if the work has failed too often in a row; what the model is told if the person took it.
    pub(super) fn offer_debug(&self, tool: &str) -> Option<Map<String, Value>> {
        if !JUDGED.contains(&tool) || !self.has_an_offer() {
            return None;
        }
        // What cannot be measured is not offered, and the person's own request would say why.
        self.measure_debt().ok()?;
        let taken = Event::ModeSet { mode: Mode::Debug, consent: Consent::Person };
        self.desk.look().workflow.clone().apply(taken).ok()?;
        let intent = format!(
            "the tests failed {FAILURES_BEFORE_OFFER} times in a row, so go on in debug mode"
        );
        self.ask_for_mode(Mode::Debug, &intent).ok()?;
        let (state, mode) = (self.state(), self.mode());
        let told = json!({
            "mode": mode.name(),
            "state": state.name(),
            "next": next_step(state, mode),
        });
        match told {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether there is something to offer that was not offered for this row of failures.
    fn has_an_offer(&self) -> bool {
        let offers = {
            let inside = self.desk.look();
            inside.workflow.standing().access == Access::Write && inside.workflow.offers_debug()
        };
        self.desk.change().set(|inside| {
            let before = std::mem::replace(&mut inside.progress.offered, offers);
            offers && !before
        })
    }
}
