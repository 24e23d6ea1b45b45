//! Where a session stands: asked of the kernel that works on it, or read from the ledger where nobody does.

use fluffy_agent::spending;
use fluffy_base::{SessionId, Usd};
use fluffy_kernel::schedule::Shown;
use fluffy_kernel::{Grant, SessionStatus, StoredSession};
use fluffy_provider::Usage;
use fluffy_workflow::Access;
use serde::{Deserialize, Serialize};

use crate::client::Link;
use crate::drive::stored;
use crate::environment::Environment;
use crate::explain::CliError;
use crate::place::Place;
use crate::service::Run;
use crate::wire::{self, StatusRequest};

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    /// Its id.
    pub(crate) session: String,
    /// What the person wanted first.
    pub(crate) task: String,
    /// Whether it is under way.
    pub(crate) under_way: bool,
    /// Whether whoever asked drives it.
    pub(crate) drives: bool,
    /// Where its work stands, `done` where it is.
    pub(crate) state: String,
    /// How strictly it works.
    pub(crate) mode: String,
    /// Whether it may write nothing.
    pub(crate) read_only: bool,
    /// How many turns the model had.
    pub(crate) turns: u64,
    /// What they used.
    pub(crate) usage: Usage,
    /// What they cost, where prices are known.
    pub(crate) cost_usd: Option<Usd>,
    /// How its coverage stood when it was last measured.
    pub(crate) budget: Option<String>,
    /// The question that waits for an answer.
    pub(crate) review: Option<OpenQuestion>,
    /// What is pinned, by path.
    pub(crate) pins: Vec<String>,
    /// What the person agreed to for as long as it lasts.
    pub(crate) grants: Vec<Granted>,
    /// What was done, if it is.
    pub(crate) summary: Option<String>,
    /// What works in sandboxes for it, or waits to.
    pub(crate) tasks: Vec<Seat>,
}

/// A task of the scheduler as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seat {
    /// Which.
    pub(crate) id: u64,
    /// What it is called.
    pub(crate) name: String,
    /// Its kind of sandbox.
    pub(crate) template: String,
    /// How urgent it is, from 1 to 5.
    pub(crate) priority: u8,
    /// Where it stands.
    pub(crate) state: String,
    /// What it waits for, if it waits.
    pub(crate) waits: Option<String>,
    /// How long it has worked, in milliseconds.
    pub(crate) worked_ms: u64,
}

impl Seat {
    fn of(shown: Shown) -> Self {
        Self {
            id: shown.id.0,
            name: shown.name,
            template: shown.template.to_string(),
            priority: shown.priority.level(),
            state: shown.stage.name().to_owned(),
            waits: shown.waits,
            worked_ms: shown.worked_ms,
        }
    }
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenQuestion {
    /// Which.
    pub(crate) id: String,
    /// What is to be done.
    pub(crate) action: String,
}

/// A grant as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Granted {
    /// Which.
    pub(crate) number: u64,
    /// For which tool.
    pub(crate) tool: String,
    /// For what.
    pub(crate) target: String,
    /// The rules whose objections it answers.
    pub(crate) rules: Vec<String>,
    /// Who agreed.
    pub(crate) by: String,
    /// The policy under which it counts.
    pub(crate) policy: String,
}

impl Granted {
    fn of(grant: &Grant) -> Self {
        Self {
            number: grant.number,
            tool: grant.tool.clone(),
            target: grant.shown_target().to_owned(),
            rules: grant.rules().into_iter().map(str::to_owned).collect(),
            by: grant.by.clone(),
            policy: grant.policy.to_string(),
        }
    }
}

impl Status {
    /// Where a session stands now, whoever works on it.
    pub(crate) fn now(
        place: &Place,
        environment: &Environment,
        id: &SessionId,
    ) -> Result<Self, CliError> {
        let request = StatusRequest { session: Some(id.to_string()) };
        let line = Link::new(place, environment).existing()?;
        // Where it is not under way, the ledger has all of it.
        let told = line.and_then(|line| line.call(wire::STATUS, &request).ok());
        told.map_or_else(|| Self::of(id.as_str(), &stored(place, id.as_str())?), Ok)
    }

    /// Of a session that is under way.
    pub(crate) fn under_way(
        place: &Place,
        id: &str,
        run: &Run,
        drives: bool,
    ) -> Result<Self, CliError> {
        let mut status = Self::of(id, &stored(place, id)?)?;
        if let Some(now) = run.steered(fluffy_kernel::Session::status) {
            status.update(now);
        }
        let tasks = place.scheduler().tasks().into_iter().map(Seat::of).collect();
        Ok(Self { under_way: true, drives, review: run.open_question(), tasks, ..status })
    }

    fn of(id: &str, stored: &StoredSession) -> Result<Self, CliError> {
        let spending = spending(stored)?;
        let recorded =
            stored.driver.as_ref().is_none_or(|driver| driver.provider.starts_with("replay:"));
        Ok(Self {
            session: id.to_owned(),
            task: stored.task.clone(),
            under_way: false,
            drives: false,
            state: stored.standing().to_owned(),
            mode: stored.mode().name().to_owned(),
            read_only: stored.access() == Access::ReadOnly,
            turns: stored.turns.len() as u64,
            usage: spending.usage,
            cost_usd: spending.cost.map(Usd::from_micros).filter(|_| !recorded),
            budget: None,
            review: None,
            pins: stored.pins().iter().map(|pin| pin.path.to_string()).collect(),
            grants: stored.grants.iter().map(Granted::of).collect(),
            summary: stored.done().map(str::to_owned),
            tasks: Vec::new(),
        })
    }

    /// What the session itself knows better.
    fn update(&mut self, now: SessionStatus) {
        let done = now.done.is_some();
        self.state = if done { "done" } else { now.state.name() }.to_owned();
        self.mode = now.mode.name().to_owned();
        self.turns = now.turns;
        self.budget = now.budget;
        self.pins = now.pins;
        self.grants = now.grants.iter().map(Granted::of).collect();
        self.summary = now.done;
    }
}
