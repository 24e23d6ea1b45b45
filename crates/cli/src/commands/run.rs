//! `fluffy run`: one task, from what was typed to an exit code.
//!
//! **Invariant.** Whoever watches is told the end of every task that was begun, exactly once, whether it
//! was reached, missed or prevented by an error.

use std::io;
use std::sync::Arc;

use fluffy_base::{Event, Observer, SystemClock};
use fluffy_kernel::Reviewer;
use fluffy_workflow::{Access, Mode};

use crate::answer_file::AnswerFile;
use crate::args::{CapArgs, TaskArgs};
use crate::drive::Scene;
use crate::environment::Environment;
use crate::explain::{CANCELLED, CAP_REACHED, CliError, DENIED, DONE, FAILED, PROVIDER_FAILED};
use crate::place::Place;
use crate::providers::Choice;
use crate::render::{JsonLines, Look, Parts, People, Progress};
use crate::review::{AtTerminal, Person, Said, TaskReviewer};
use crate::task_text;

/// A task as it was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRequest {
    /// What is to be done.
    pub(crate) task: String,
    /// How strictly to work.
    pub(crate) mode: Mode,
    /// Whether anything may be written.
    pub(crate) access: Access,
    /// Files to be kept before the model's eyes.
    pub(crate) pins: Vec<String>,
    /// Which model drives it.
    pub(crate) choice: Choice,
    /// Where it has to stop.
    pub(crate) caps: Caps,
}

/// Where a task has to stop, finished or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caps {
    /// Turns of the model.
    pub(crate) turns: u64,
    /// Tokens, sent and received.
    pub(crate) tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub(crate) cost_micros: Option<u64>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done.
    Completed(Done),
    /// It did not reach done.
    Failed(Ending),
    /// Something it cannot do without was denied, or its changes were rejected.
    Denied(Ending),
    /// The provider failed.
    ProviderFailed(Ending),
    /// A cap was reached.
    CapReached(Ending),
    /// The user had enough.
    Cancelled,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    /// The answer.
    pub(crate) summary: String,
    /// The files that were changed.
    pub(crate) files_changed: Vec<String>,
    /// How many turns the model had.
    pub(crate) turns: u64,
    /// Root of the ledger's tree.
    pub(crate) ledger_root: String,
}

/// Why a task did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// What happened.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What to do about it.
    pub(crate) fix: String,
}

/// What drives a task to its end: the session, the kernel and the model's loop, put together. It tells
/// everything but the end, which is told of what it returns.
pub(crate) type Drive<'a> = &'a dyn Fn(&RunRequest, &Scene<'_>) -> Result<Outcome, CliError>;

/// How a task is watched and answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Whether events go to the standard output as JSON lines.
    pub(crate) json: bool,
    /// What was said of reviews.
    pub(crate) said: Said,
    /// Where people watch.
    pub(crate) stage: Stage,
}

/// Where people watch a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The standard error: the standard output is for the answer.
    Stderr,
    /// The standard output: the work itself is what is shown.
    Stdout,
}

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &TaskArgs,
    drive: Drive<'_>,
) -> Result<u8, CliError> {
    let request = RunRequest::of(args, &mut io::stdin().lock())?;
    let file = args.out.as_deref().map(AnswerFile::at).transpose()?;
    let manner = Manner { json: args.json, said: said(args.yes, args.no), stage: Stage::Stderr };
    let driven = |observer: Arc<dyn Observer>, reviewer: Arc<dyn Reviewer>| {
        let outcome = drive(&request, &Scene { place, environment, observer, reviewer })?;
        if let (Some(file), Outcome::Completed(done)) = (&file, &outcome) {
            file.write(&done.summary)?;
        }
        Ok(outcome)
    };
    watched(manner, environment, &driven)
}

/// Has a task driven, shown as is fitting here; gives the exit code.
pub(crate) fn watched(
    manner: Manner,
    environment: &Environment,
    drive: &dyn Fn(Arc<dyn Observer>, Arc<dyn Reviewer>) -> Result<Outcome, CliError>,
) -> Result<u8, CliError> {
    let (look, progress): (_, Box<dyn io::Write + Send>) = match manner.stage {
        Stage::Stderr => (Look::of_stderr(environment), Box::new(io::stderr())),
        Stage::Stdout => (Look::of_stdout(environment), Box::new(io::stdout())),
    };
    let (code, failure) = if manner.json {
        let lines = JsonLines::new(Box::new(io::stdout()), Arc::new(SystemClock));
        let lines = Arc::new(lines);
        // Questions are shown on the standard error all the same: a person may be there to answer.
        let code = reviewed(manner.said, lines.clone(), Box::new(AtTerminal), look, drive);
        (code, lines.failure())
    } else {
        let people = Arc::new(People::new(Parts {
            progress,
            answer: Box::new(io::stdout()),
            look,
            clock: Arc::new(SystemClock),
        }));
        let turning = look.screen.map(|_| Progress::of(Arc::clone(&people))).transpose()?;
        let code = reviewed(manner.said, people.clone(), Box::new(AtTerminal), look, drive);
        drop(turning);
        (code, people.failure())
    };
    match failure {
        // A reader who has gone away does not change how the task ended.
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Some(_) | None => Ok(code),
    }
}

/// Has a task driven and tells its end.
fn reviewed(
    said: Said,
    observer: Arc<dyn Observer>,
    person: Box<dyn Person>,
    look: Look,
    drive: &dyn Fn(Arc<dyn Observer>, Arc<dyn Reviewer>) -> Result<Outcome, CliError>,
) -> u8 {
    let reviewer = TaskReviewer::new(said, Arc::clone(&observer), person, look);
    let (code, end) = match drive(Arc::clone(&observer), Arc::new(reviewer)) {
        Ok(outcome) => (outcome.code(), outcome.event()),
        Err(error) => {
            let explained = error.explained();
            let (what, why, fix) = (explained.what, explained.why, explained.fix);
            (explained.code, Event::TaskFailed { what, why, fix })
        }
    };
    observer.notice(end);
    code
}

/// What was said of reviews; clap lets nobody say both.
pub(crate) fn said(yes: bool, no: bool) -> Said {
    match (yes, no) {
        (_, true) => Said::No,
        (true, false) => Said::Yes,
        (false, false) => Said::Nothing,
    }
}

impl RunRequest {
    /// What was typed, understood.
    pub(crate) fn of(
        args: &TaskArgs,
        input: &mut (impl io::Read + io::IsTerminal),
    ) -> Result<Self, CliError> {
        let choice = Choice::typed(args.provider.as_deref(), args.model.as_deref())?;
        let caps = Caps::of(&args.caps)?;
        let access = if args.read_only { Access::ReadOnly } else { Access::Write };
        let task = task_text::read(args.task.as_deref(), input)?;
        let pins = args.pins.clone();
        Ok(Self { task, mode: args.mode.mode(), access, pins, choice, caps })
    }
}

impl Caps {
    /// What was typed, understood.
    pub(crate) fn of(args: &CapArgs) -> Result<Self, CliError> {
        let cost_micros = args.max_cost.as_deref().map(micros).transpose()?;
        Ok(Self { turns: args.max_turns, tokens: args.max_tokens, cost_micros })
    }
}

impl Outcome {
    /// The exit code for it.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Completed(_) => DONE,
            Self::Failed(_) => FAILED,
            Self::Denied(_) => DENIED,
            Self::ProviderFailed(_) => PROVIDER_FAILED,
            Self::CapReached(_) => CAP_REACHED,
            Self::Cancelled => CANCELLED,
        }
    }

    /// What whoever watches is told of it.
    pub(crate) fn event(&self) -> Event {
        match self.clone() {
            Self::Completed(Done { summary, files_changed, turns, ledger_root }) => {
                Event::TaskCompleted { summary, files_changed, turns, ledger_root }
            }
            Self::Failed(end)
            | Self::Denied(end)
            | Self::ProviderFailed(end)
            | Self::CapReached(end) => {
                Event::TaskFailed { what: end.what, why: end.why, fix: end.fix }
            }
            Self::Cancelled => Event::TaskFailed {
                what: "the task was cancelled".to_owned(),
                why: "you asked for it; the project is as it was after the last merge".to_owned(),
                fix: "go on with: fluffy session resume".to_owned(),
            },
        }
    }
}

/// Millionths of a dollar: `0.5` is 500,000. Digits beyond are refused, not rounded: a cap is exact.
fn micros(text: &str) -> Result<u64, CliError> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = digits(whole) && digits(part) && part.len() <= 6 && !whole.is_empty();
    let amount = well_formed.then(|| {
        let whole = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?;
        whole.checked_add(format!("{part:0<6}").parse::<u64>().ok()?)
    });
    amount.flatten().filter(|micros| *micros > 0).ok_or_else(|| CliError::Value {
        given: text.to_owned(),
        wanted: "an amount of US dollars above 0, such as `0.50`".to_owned(),
    })
}

#[cfg(test)]
mod tests;
