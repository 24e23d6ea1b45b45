//! `fluffy run`: one task, from what was typed to an exit code.
//!
//! **Invariant.** Whoever watches is told the end of every task that was begun, exactly once, whether it
//! was reached, missed or prevented by an error.

use std::io;
use std::sync::Arc;

use fluffy_base::{Event, SystemClock};
use fluffy_workflow::{Access, Mode};
use serde::{Deserialize, Serialize};

use crate::answer_file::AnswerFile;
use crate::args::{CapArgs, SaidArgs, TaskArgs};
use crate::client::{Follower, Link, Watched};
use crate::commands::skill::handed;
use crate::environment::Environment;
use crate::explain::{CANCELLED, CAP_REACHED, CliError, DENIED, DONE, FAILED, PROVIDER_FAILED};
use crate::interrupt::Stop;
use crate::place::Place;
use crate::providers::Choice;
use crate::render::{JsonLines, Look, Parts, People, Progress, Status};
use crate::review::{AtTerminal, Said, TaskReviewer};
use crate::settings::Settings;
use crate::task_text;
use crate::wire::{Driver, Submission, Surroundings, Work};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Caps {
    /// Turns of the model.
    pub(crate) turns: u64,
    /// Tokens, sent and received.
    pub(crate) tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub(crate) cost_micros: Option<u64>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ending {
    /// What happened.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What to do about it.
    pub(crate) fix: String,
}

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
    settings: Settings,
    args: &TaskArgs,
    stop: &Stop,
) -> Result<u8, CliError> {
    let request = RunRequest::of(args, settings, &mut io::stdin().lock())?;
    let file = args.out.as_deref().map(AnswerFile::at).transpose()?;
    let manner = Manner { json: args.json, said: said(args.said), stage: Stage::Stderr };
    watched(manner, environment, stop, &|watched| {
        let outcome = drive(&request, place, environment, watched)?;
        if let (Some(file), Outcome::Completed(done)) = (&file, &outcome) {
            file.write(&done.summary)?;
        }
        Ok(outcome)
    })
}

/// Has a new task driven to its end by the project's kernel.
pub(crate) fn drive(
    request: &RunRequest,
    place: &Place,
    environment: &Environment,
    watched: Watched<'_>,
) -> Result<Outcome, CliError> {
    let model = request.choice.settle(environment)?;
    let work = Work::Begin {
        task: request.task.clone(),
        mode: request.mode,
        access: request.access,
        pins: request.pins.clone(),
    };
    let driver = Some(Driver { model, caps: request.caps });
    let handed = handed(place, environment, None)?;
    let surroundings = Surroundings::of(environment);
    let link = Link::new(place, environment);
    Follower::new(&link, watched)
        .carry_out(Submission { work, driver, handed, surroundings })?
        .task()
}

/// Has a task followed, shown as is fitting here; gives the exit code.
pub(crate) fn watched(
    manner: Manner,
    environment: &Environment,
    stop: &Stop,
    follow: Follow<'_>,
) -> Result<u8, CliError> {
    let (look, progress): (_, Box<dyn io::Write + Send>) = match manner.stage {
        Stage::Stderr => (Look::of_stderr(environment), Box::new(io::stderr())),
        Stage::Stdout => (Look::of_stdout(environment), Box::new(io::stdout())),
    };
    let reviewer = TaskReviewer::new(manner.said, Box::new(AtTerminal), look);
    let (code, failure) = if manner.json {
        // Questions are shown on the standard error all the same: a person may be there to answer.
        let lines = JsonLines::new(Box::new(io::stdout()), Arc::new(SystemClock));
        (told(Watched { observer: &lines, reviewer: &reviewer, stop }, follow), lines.failure())
    } else {
        let people = Arc::new(People::new(Parts {
            progress,
            answer: Box::new(io::stdout()),
            look,
            clock: Arc::new(SystemClock),
        }));
        let status: Arc<dyn Status> = Arc::<People>::clone(&people);
        let turning = look.screen.map(|_| Progress::of(status)).transpose()?;
        let code = told(Watched { observer: &*people, reviewer: &reviewer, stop }, follow);
        drop(turning);
        (code, people.failure())
    };
    match failure {
        // A reader who has gone away does not change how the task ended.
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Some(_) | None => Ok(code),
    }
}

/// Follows a task to its end.
pub(crate) type Follow<'a> = &'a dyn Fn(Watched<'_>) -> Result<Outcome, CliError>;

/// Has a task followed and tells its end.
fn told(watched: Watched<'_>, follow: Follow<'_>) -> u8 {
    let observer = watched.observer;
    let (code, end) = match follow(watched) {
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
pub(crate) fn said(SaidArgs { yes, no }: SaidArgs) -> Said {
    match (yes, no) {
        (_, true) => Said::No,
        (true, false) => Said::Yes,
        (false, false) => Said::Nothing,
    }
}

impl RunRequest {
    /// What was typed, understood; what was not typed is as the settings have it.
    pub(crate) fn of(
        args: &TaskArgs,
        settings: Settings,
        input: &mut (impl io::Read + io::IsTerminal),
    ) -> Result<Self, CliError> {
        let choice = Choice::typed(args.provider.as_deref(), args.model.as_deref())?;
        let typed = args.mode.map(|mode| mode.mode().name());
        let settings = settings.typed("mode", typed)?;
        let mode = settings.mode(args.said.yes)?;
        let caps = Caps::of(&args.caps, settings)?;
        let access = if args.read_only { Access::ReadOnly } else { Access::Write };
        let task = task_text::read(args.task.as_deref(), input)?;
        let pins = args.pins.clone();
        Ok(Self { task, mode, access, pins, choice, caps })
    }
}

impl Caps {
    /// What was typed, understood; what was not typed is as the settings have it.
    pub(crate) fn of(args: &CapArgs, settings: Settings) -> Result<Self, CliError> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let settings = settings
            .typed("max_turns", number(args.max_turns).as_deref())?
            .typed("max_tokens", number(args.max_tokens).as_deref())?
            .typed("max_cost", args.max_cost.as_deref())?;
        Ok(Self {
            // The table has a default; without one, a task is not endless.
            turns: settings.number("max_turns").unwrap_or(1),
            tokens: settings.number("max_tokens"),
            cost_micros: settings.number("max_cost"),
        })
    }

    /// The same in the loop's words.
    pub(crate) const fn of_loop(self) -> fluffy_agent::Caps {
        fluffy_agent::Caps { turns: self.turns, tokens: self.tokens, cost: self.cost_micros }
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

#[cfg(test)]
mod tests;
