//! `fluffy session status`, `tasks` and `grants`: where a session stands, what of it works in sandboxes, and what a person agreed
//! to for all of it.

use fluffy_base::Excerpt;
use serde::Serialize;
use serde_json::json;

use super::list::meant;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::inert::inert;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::render::{Used, counted, duration};
use crate::status::{Granted, Seat, Status};

/// How much of what somebody wrote stands in one line.
const SHOWN: usize = 200;

/// Where a session stands now, the last one where none is named.
pub(super) fn now(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
) -> Result<Status, CliError> {
    Status::now(place, environment, &meant(place, id)?)
}

pub(super) fn run(status: &Status, json: bool, output: &mut Output) -> Result<u8, CliError> {
    if json {
        output.line(json!(status))?;
        return Ok(DONE);
    }
    for (name, text) in lines(status) {
        let name = output.paint(Tone::Strong, &format!("{name:<7}"));
        output.line(format!("{name} {text}"))?;
    }
    Ok(DONE)
}

pub(super) fn grants(status: &Status, json: bool, output: &mut Output) -> Result<u8, CliError> {
    if json {
        return in_json(&status.grants, output);
    }
    for line in grant_lines(status) {
        output.line(line)?;
    }
    Ok(DONE)
}

pub(super) fn tasks(status: &Status, json: bool, output: &mut Output) -> Result<u8, CliError> {
    if json {
        return in_json(&status.tasks, output);
    }
    for task in &status.tasks {
        output.line(format!("{:>4}  {:<7}  {}", task.id, task.word(), task.line()))?;
    }
    if status.tasks.is_empty() {
        output.line("nothing works in a sandbox or waits for one")?;
    }
    Ok(DONE)
}

fn in_json<T: Serialize>(items: &[T], output: &mut Output) -> Result<u8, CliError> {
    items.iter().try_for_each(|item| output.line(json!(item)))?;
    Ok(DONE)
}

fn grant_lines(status: &Status) -> Vec<String> {
    let nothing = "nothing was agreed to for the whole session".to_owned();
    let grants: Vec<String> = status.grants.iter().map(Granted::line).collect();
    if grants.is_empty() { vec![nothing] } else { grants }
}

/// Where a session stands, the last one where none is named, a line each.
pub(crate) fn told(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
) -> Result<Vec<String>, CliError> {
    let status = now(place, environment, id)?;
    Ok(lines(&status).into_iter().map(|(name, text)| format!("{name:<7} {text}")).collect())
}

/// What a person agreed to for all of a session, a line each.
pub(crate) fn granted(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
) -> Result<Vec<String>, CliError> {
    Ok(grant_lines(&now(place, environment, id)?))
}

impl Seat {
    /// Where it stands, in a word.
    fn word(&self) -> &'static str {
        match (self.state.as_str(), &self.waits) {
            ("paused", _) => "Paused",
            (_, Some(_)) => "Waiting",
            ("ending", None) => "Ending",
            (_, None) => "Running",
        }
    }

    /// The task on one line.
    fn line(&self) -> String {
        let Self { template, priority, worked_ms, .. } = self;
        let name = Excerpt::new(&self.name, SHOWN);
        let worked = duration(*worked_ms);
        let waits =
            self.waits.as_ref().map_or_else(String::new, |waits| format!(", waits {waits}"));
        format!("{name} in {template}, priority {priority}, worked {worked}{waits}")
    }
}

impl Granted {
    /// The grant on one line.
    pub(crate) fn line(&self) -> String {
        let Self { number, tool, rules, by, policy, .. } = self;
        let target = Excerpt::new(&self.target, SHOWN);
        let policy = policy.get(..12).unwrap_or(policy);
        let rules = rules.join(", ");
        format!("{number}  {tool} {target}  (rule {rules}; by {by}; under policy {policy})")
    }
}

fn lines(status: &Status) -> Vec<(&'static str, String)> {
    let turns = counted(status.turns, "turn");
    let under_way = if status.under_way { ", under way" } else { "" };
    let read_only = if status.read_only { ", read-only" } else { "" };
    let (state, mode) = (&status.state, &status.mode);
    let mut lines = vec![
        ("Session", status.session.clone()),
        ("Task", inert(&status.task).into_owned()),
        ("Stands", format!("{state} in {mode} mode, {turns}{read_only}{under_way}")),
    ];
    let usage = status.usage;
    if usage.total() > 0 {
        let used = Used::of_turn(usage.input, usage.output, usage.cached, status.cost_usd);
        lines.push(("Used", used.told(status.cost_usd.is_none()).join(", ")));
    }
    lines.extend(status.budget.iter().map(|text| ("Budget", text.clone())));
    let action = |action: &str| Excerpt::new(action, SHOWN).to_string();
    lines.extend(status.review.iter().map(|open| ("Waits", action(&open.action))));
    lines.extend(status.tasks.iter().map(|task| (task.word(), task.line())));
    lines.extend(status.pins.iter().map(|path| ("Pinned", path.clone())));
    lines.extend(status.grants.iter().map(|grant| ("Grant", grant.line())));
    lines.extend(status.summary.iter().map(|text| ("Done", inert(text).into_owned())));
    lines
}
