//! `fluffy session`: what became of tasks, and what may still become of them.

use std::sync::Arc;

use fluffy_agent::{Spending, spending, transcript};
use fluffy_base::{Excerpt, Observer, SessionId, Usd};
use fluffy_kernel::{Driver, Reviewer, Session, SessionSummary, StoredSession, sessions};
use fluffy_workflow::Mode;
use serde_json::json;

use crate::args::{ExportSessionArgs, ResumeArgs, SessionCommand};
use crate::commands::run::{Caps, Manner, Stage, said, watched};
use crate::drive::{Scene, resume, stored};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::interrupt::Stop;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::providers::Choice;
use crate::render::{Look, Used};
use crate::review::{AtTerminal, Said, TaskReviewer};
use crate::time;

/// How many sessions are listed.
const LISTED: usize = 100;
/// How much of a task a list shows.
const SHOWN: usize = 60;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    command: &SessionCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    match command {
        SessionCommand::List { json } => list(place, *json, output),
        SessionCommand::Show { id, json } => show(place, id.as_deref(), *json, output),
        SessionCommand::Diff { id } => {
            let session = wake(place, environment, id.as_deref())?;
            let diff = session.diff()?;
            session.close()?;
            output.raw().write_all(diff.patch())?;
            Ok(DONE)
        }
        SessionCommand::Undo { id } => {
            let session = wake(place, environment, id.as_deref())?;
            let undone = session.undo();
            session.close()?;
            output.line(format!("step {} is taken back", undone?))?;
            Ok(DONE)
        }
        SessionCommand::Rewind { step, id } => {
            let session = wake(place, environment, id.as_deref())?;
            let rewound = session.rewind(*step);
            session.close()?;
            rewound?;
            output.line(format!("the session is as it was after step {step}"))?;
            Ok(DONE)
        }
        SessionCommand::Mode { mode, id } => {
            set_mode(place, environment, mode.mode(), id.as_deref(), output)
        }
        SessionCommand::Budget { id } => {
            let session = wake(place, environment, id.as_deref())?;
            let account = session.budget();
            session.close()?;
            output.line(account?)?;
            Ok(DONE)
        }
        SessionCommand::Resume(args) => go_on(place, environment, args),
        SessionCommand::Rm { id } => remove(place, environment, id, output),
        SessionCommand::Export(args) => export(place, args, output),
    }
}

fn all(place: &Place) -> Result<Vec<SessionSummary>, CliError> {
    Ok(sessions(&super::ledger_file(place)?, LISTED)?)
}

/// The session that is meant: by its id, the beginning of it, or the last one.
fn meant(place: &Place, id: Option<&str>) -> Result<SessionId, CliError> {
    let known = all(place)?;
    let Some(id) = id else {
        let last = known.first().ok_or(CliError::NoSession)?;
        return SessionId::named(&last.id).ok_or(CliError::NoSession);
    };
    let found: Vec<_> = known.iter().filter(|session| is_called(&session.id, id)).collect();
    match found.as_slice() {
        [session] => SessionId::named(&session.id).ok_or(CliError::NoSession),
        [] => Err(CliError::UnknownSession(Excerpt::new(id, SHOWN).to_string())),
        _several => Err(CliError::AmbiguousSession(Excerpt::new(id, SHOWN).to_string())),
    }
}

/// Whether a session is meant by this: its id, or the beginning of what is its own in it.
fn is_called(full: &str, given: &str) -> bool {
    let own = full.split_once('-').map_or(full, |(_, own)| own);
    !given.is_empty() && (full == given || own.starts_with(given))
}

fn list(place: &Place, json: bool, output: &mut Output) -> Result<u8, CliError> {
    for session in all(place)? {
        let stored = stored(place, &session.id);
        let state = stored.as_ref().map_or("damaged", standing);
        if json {
            let line = json!({ "id": session.id, "started_ms": session.started_ms,
                "state": state, "task": session.task });
            output.line(line)?;
            continue;
        }
        let when = output.paint(Tone::Quiet, &time::show(session.started_ms));
        let task = Excerpt::new(&session.task, SHOWN);
        output.line(format!("{}  {when}  {state:<13} {task}", session.id))?;
    }
    Ok(DONE)
}

fn standing(stored: &StoredSession) -> &'static str {
    match stored.done() {
        Some(_) => "done",
        None => stored.state().name(),
    }
}

fn show(place: &Place, id: Option<&str>, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let id = meant(place, id)?;
    let stored = stored(place, id.as_str())?;
    let steps: Vec<(u64, Vec<String>)> = stored.open_steps().collect();
    let pins: Vec<String> = stored.pins().iter().map(|pin| pin.path.to_string()).collect();
    let Spending { usage, cost } = spending(&stored)?;
    let recorded =
        stored.driver.as_ref().is_none_or(|driver| driver.provider.starts_with("replay:"));
    let cost = cost.map(Usd::from_micros).filter(|_| !recorded);
    if json {
        let steps = steps.iter().map(|(number, files)| json!({ "step": number, "files": files }));
        output.line(json!({
            "id": id.as_str(), "task": stored.task, "started_ms": stored.started_ms,
            "state": standing(&stored), "mode": stored.mode().name(), "turns": stored.turns.len(),
            "provider": stored.driver.as_ref().map(|driver| &driver.provider),
            "model": stored.driver.as_ref().map(|driver| &driver.model),
            "usage": usage, "cost_usd": cost,
            "summary": stored.done(), "merged": stored.merged(), "commits": stored.commits(),
            "steps": steps.collect::<Vec<_>>(), "pins": pins,
        }))?;
        return Ok(DONE);
    }
    let strong = |text: &str| output.paint(Tone::Strong, text);
    let mut lines = vec![
        format!("{} {id}", strong("Session")),
        format!("{} {}", strong("Task   "), crate::inert::inert(&stored.task)),
        format!(
            "{} {} in {} mode, {} turns",
            strong("Stands "),
            standing(&stored),
            stored.mode(),
            stored.turns.len()
        ),
    ];
    lines.extend(pins.iter().map(|path| format!("{} {path}", strong("Pinned "))));
    if let Some(Driver { provider, model }) = &stored.driver {
        let text = Excerpt::new(format!("{provider} {model}").trim_end(), 200).to_string();
        lines.push(format!("{} {text}", strong("Model  ")));
    }
    if usage.total() > 0 {
        let used = Used::of_turn(usage.input, usage.output, usage.cached, cost);
        lines.push(format!("{} {}", strong("Used   "), used.told(recorded).join(", ")));
    }
    lines.extend(
        stored
            .done()
            .map(|summary| format!("{} {}", strong("Done   "), crate::inert::inert(summary))),
    );
    lines.extend(stored.merged().iter().map(|path| format!("{} {path}", strong("Merged "))));
    lines.extend(stored.commits().iter().map(|commit| format!("{} {commit}", strong("Commit "))));
    let files = |(number, files): &(u64, Vec<String>)| {
        format!("{} {number}: {}", strong("Step   "), files.join(", "))
    };
    lines.extend(steps.iter().map(files));
    for line in lines {
        output.line(line)?;
    }
    Ok(DONE)
}

/// A session with its kernel, for a person to look at or to take back.
fn wake(place: &Place, environment: &Environment, id: Option<&str>) -> Result<Session, CliError> {
    wake_before(place, environment, id, Arc::new(Nobody))
}

/// The same with somebody who can be asked.
fn wake_before(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
    reviewer: Arc<dyn Reviewer>,
) -> Result<Session, CliError> {
    let id = meant(place, id)?;
    let observer: Arc<dyn Observer> = Arc::new(());
    let scene = Scene { place, environment, observer, reviewer };
    let (session, _stored) = Session::resume(scene.config()?, id)?;
    Ok(session)
}

/// Sets a session's mode. The policy and, where the workflow wants it, the person at the terminal decide.
fn set_mode(
    place: &Place,
    environment: &Environment,
    mode: Mode,
    id: Option<&str>,
    output: &mut Output,
) -> Result<u8, CliError> {
    let look = Look::of_stderr(environment);
    let reviewer = TaskReviewer::new(Said::Nothing, Arc::new(()), Box::new(AtTerminal), look);
    let session = wake_before(place, environment, id, Arc::new(reviewer))?;
    let (name, is_set) = (session.id().to_string(), session.mode() == mode);
    let set = if is_set { Ok(()) } else { session.set_mode(mode) };
    session.close()?;
    set?;
    let since = if is_set { "works in" } else { "now works in" };
    output.line(format!("session {name} {since} {mode} mode"))?;
    Ok(DONE)
}

/// Nobody is asked while a session is only looked at.
struct Nobody;

impl Reviewer for Nobody {
    fn review(&self, _: &fluffy_kernel::Question<'_>) -> fluffy_kernel::Review {
        crate::terminal::nobody()
    }
}

fn go_on(place: &Place, environment: &Environment, args: &ResumeArgs) -> Result<u8, CliError> {
    let id = meant(place, args.id.as_deref())?;
    let choice = Choice::typed(args.provider.as_deref(), args.model.as_deref())?;
    let caps = Caps::of(&args.caps)?;
    let stop = Stop::listen()?;
    let manner = Manner { json: args.json, said: said(args.yes, args.no), stage: Stage::Stderr };
    watched(manner, environment, &|observer, reviewer| {
        let scene = Scene { place, environment, observer, reviewer };
        resume(&id, choice.clone(), caps, &scene, &stop)
    })
}

#[expect(clippy::disallowed_methods, reason = "the one place that removes a session's files")]
fn remove(
    place: &Place,
    environment: &Environment,
    id: &str,
    output: &mut Output,
) -> Result<u8, CliError> {
    let id = meant(place, Some(id))?;
    if stored(place, id.as_str())?.done().is_none() {
        let session = wake(place, environment, Some(id.as_str()))?;
        session.give_up()?;
        session.close()?;
    }
    let dir = place.sessions().join(id.as_str());
    match std::fs::remove_dir_all(&dir) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::File { action: "remove", path: dir, source });
        }
        Ok(()) | Err(_) => {}
    }
    output.line(format!("session {id} is given up; the ledger keeps what happened"))?;
    Ok(DONE)
}

fn export(place: &Place, args: &ExportSessionArgs, output: &mut Output) -> Result<u8, CliError> {
    let id = meant(place, args.id.as_deref())?;
    let lines = transcript(&stored(place, id.as_str())?)?;
    let text = lines.join("\n") + "\n";
    match &args.out {
        None => output.raw().write_all(text.as_bytes())?,
        Some(path) => super::write(path, text.as_bytes())?,
    }
    Ok(DONE)
}
