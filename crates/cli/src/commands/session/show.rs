//! `fluffy session show`: what happened in a session and where it stands.

use fluffy_agent::{Spending, spending};
use fluffy_base::{Excerpt, SessionId, Usd};
use fluffy_kernel::{Archived, Driver, ForkedFrom, SessionSummary, StoredSession};
use serde_json::{Value, json};

use super::list::{known, meant};
use crate::drive::stored;
use crate::explain::{CliError, DONE};
use crate::inert::inert;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::render::Used;
use crate::time;

pub(super) fn run(
    place: &Place,
    id: Option<&str>,
    json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let id = meant(place, id)?;
    let shown = Shown::of(place, id)?;
    if json {
        output.line(shown.json())?;
        return Ok(DONE);
    }
    for (name, text) in shown.lines() {
        let name = output.paint(Tone::Strong, &format!("{name:<7}"));
        output.line(format!("{name} {text}"))?;
    }
    Ok(DONE)
}

/// A session and what is told of it.
struct Shown {
    id: SessionId,
    stored: StoredSession,
    steps: Vec<(u64, Vec<String>)>,
    pins: Vec<String>,
    /// The sessions that go on from it.
    forks: Vec<String>,
    spending: Spending,
    /// Whether a transcript played the model, which costs nothing.
    recorded: bool,
}

impl Shown {
    fn of(place: &Place, id: SessionId) -> Result<Self, CliError> {
        let stored = stored(place, id.as_str())?;
        let is_fork = |session: &SessionSummary| {
            session.forked.as_ref().is_some_and(|fork| fork.session == id.as_str())
        };
        let forks = known(place, usize::MAX)?.into_iter().filter(is_fork);
        let forks = forks.map(|session| session.id).collect();
        let recorded =
            stored.driver.as_ref().is_none_or(|driver| driver.provider.starts_with("replay:"));
        Ok(Self {
            steps: stored.open_steps().collect(),
            pins: stored.pins().iter().map(|pin| pin.path.to_string()).collect(),
            forks,
            spending: spending(&stored)?,
            recorded,
            id,
            stored,
        })
    }

    fn cost(&self) -> Option<Usd> {
        self.spending.cost.map(Usd::from_micros).filter(|_| !self.recorded)
    }

    fn json(&self) -> Value {
        let stored = &self.stored;
        let step = |(number, files): &(u64, Vec<String>)| json!({ "step": number, "files": files });
        json!({
            "id": self.id.as_str(), "task": stored.task, "messages": stored.messages, "started_ms": stored.started_ms,
            "state": stored.standing(), "mode": stored.mode().name(), "turns": stored.turns.len(),
            "provider": stored.driver.as_ref().map(|driver| &driver.provider),
            "model": stored.driver.as_ref().map(|driver| &driver.model),
            "usage": self.spending.usage, "cost_usd": self.cost(),
            "summary": stored.done(), "merged": stored.merged(), "commits": stored.commits(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(), "pins": self.pins,
            "forked_from": stored.forked, "forks": self.forks,
            "archived_ms": stored.archived.map(|archived| archived.since_ms),
        })
    }

    /// What each line is about, and what it says.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let stored = &self.stored;
        let (standing, mode, turns) = (stored.standing(), stored.mode(), stored.turns.len());
        let mut lines =
            vec![("Session", self.id.to_string()), ("Task", inert(&stored.task).into_owned())];
        lines.extend(stored.messages.iter().map(|said| ("Said", inert(&said.text).into_owned())));
        lines.push(("Stands", format!("{standing} in {mode} mode, {turns} turns")));
        if let Some(ForkedFrom { session, entry, .. }) = &stored.forked {
            lines.push(("Forked", format!("from {} at entry {entry}", inert(session))));
        }
        lines.extend(self.forks.iter().map(|fork| ("Fork", fork.clone())));
        if let Some(Archived { since_ms, .. }) = stored.archived {
            lines.push(("Archive", format!("since {}", time::show(since_ms))));
        }
        lines.extend(self.pins.iter().map(|path| ("Pinned", path.clone())));
        if let Some(Driver { provider, model }) = &stored.driver {
            let text = Excerpt::new(format!("{provider} {model}").trim_end(), 200).to_string();
            lines.push(("Model", text));
        }
        let usage = self.spending.usage;
        if usage.total() > 0 {
            let used = Used::of_turn(usage.input, usage.output, usage.cached, self.cost());
            lines.push(("Used", used.told(self.recorded).join(", ")));
        }
        lines.extend(stored.done().map(|summary| ("Done", inert(summary).into_owned())));
        lines.extend(stored.merged().into_iter().map(|path| ("Merged", path)));
        lines.extend(stored.commits().iter().map(|commit| ("Commit", commit.clone())));
        let step = |(number, files): &(u64, Vec<String>)| {
            ("Step", format!("{number}: {}", files.join(", ")))
        };
        lines.extend(self.steps.iter().map(step));
        lines
    }
}
