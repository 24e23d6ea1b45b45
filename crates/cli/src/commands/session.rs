//! `fluffy session`: what became of tasks, and what may still become of them.

mod export;
mod fork;
mod list;
mod markdown;
mod remove;
mod say;
mod show;
mod status;

use fluffy_base::SessionId;

pub(crate) use self::list::{listed, meant};
pub(crate) use self::status::{granted, told};
use crate::args::{FurtherArgs, ResumeArgs, SessionCommand};
use crate::client::{Follower, Link};
use crate::commands::carried_out;
use crate::commands::run::{Caps, Manner, Stage, said, watched};
use crate::commands::skill::handed;
use crate::drive::stored;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::place::Place;
use crate::providers::Choice;
use crate::review::Said;
use crate::settings::Settings;
use crate::wire::{Act, Driver, Handed, Submission, Surroundings, Work};

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    command: &SessionCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    match command {
        SessionCommand::List { all, json } => list::run(place, *all, *json, output),
        SessionCommand::Show { id, json } => show::run(place, id.as_deref(), *json, output),
        SessionCommand::Diff { id } => act(place, environment, id.as_deref(), Act::Diff, output),
        SessionCommand::Undo { id } => act(place, environment, id.as_deref(), Act::Undo, output),
        SessionCommand::Rewind { step, id } => {
            act(place, environment, id.as_deref(), Act::Rewind(*step), output)
        }
        SessionCommand::Mode { mode, id } => {
            act(place, environment, id.as_deref(), Act::Mode(mode.mode()), output)
        }
        SessionCommand::Pin { path, id } => {
            act(place, environment, id.as_deref(), Act::Pin(path.clone()), output)
        }
        SessionCommand::Unpin { path, id } => {
            act(place, environment, id.as_deref(), Act::Unpin(path.clone()), output)
        }
        SessionCommand::Status { id, json } => {
            status::run(&status::now(place, environment, id.as_deref())?, *json, output)
        }
        SessionCommand::Tasks { id, json } => {
            status::tasks(&status::now(place, environment, id.as_deref())?, *json, output)
        }
        SessionCommand::Grants { id, revoke: Some(number), .. } => {
            act(place, environment, id.as_deref(), Act::Revoke(*number), output)
        }
        SessionCommand::Grants { id, json, .. } => {
            status::grants(&status::now(place, environment, id.as_deref())?, *json, output)
        }
        SessionCommand::Say(args) => say::run(place, environment, args),
        SessionCommand::Budget { id } => {
            act(place, environment, id.as_deref(), Act::Budget, output)
        }
        SessionCommand::Attach { id, json } => attach(place, environment, id.as_deref(), *json),
        SessionCommand::Resume(args) => go_on(place, environment, args),
        SessionCommand::Fork { id, at } => {
            fork::run(place, environment, id.as_deref(), at.as_deref(), output)
        }
        SessionCommand::Rm { id } => remove::run(place, environment, id, output),
        SessionCommand::Export(args) => export::run(place, args, output),
    }
}

/// Has the project's kernel do what a person wants of a session, and shows what it says.
fn act(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
    act: Act,
    output: &mut Output,
) -> Result<u8, CliError> {
    let stop = Stop::listen()?;
    output.raw().write_all(&acted(place, environment, &meant(place, id)?, act, &stop)?)?;
    Ok(DONE)
}

/// Does it; gives what is to be shown.
pub(crate) fn acted(
    place: &Place,
    environment: &Environment,
    id: &SessionId,
    act: Act,
    stop: &Stop,
) -> Result<Vec<u8>, CliError> {
    let work = Work::Act { session: id.to_string(), act };
    let surroundings = Surroundings::of(environment);
    let submission = Submission { work, driver: None, handed: Handed::default(), surroundings };
    carried_out((place, environment), stop, Said::Nothing, submission)?.shown()
}

/// Watches what another client drives.
fn attach(
    place: &Place,
    environment: &Environment,
    id: Option<&str>,
    json: bool,
) -> Result<u8, CliError> {
    let id = id.map(|id| meant(place, Some(id))).transpose()?;
    let manner = Manner { json, said: Said::No, stage: Stage::Stderr };
    // Whoever only watches ends nothing but their watching.
    watched(manner, environment, &Stop::default(), &|watched| {
        let link = Link::new(place, environment);
        Follower::new(&link, watched).watch(id.as_ref().map(ToString::to_string))?.task()
    })
}

fn go_on(place: &Place, environment: &Environment, args: &ResumeArgs) -> Result<u8, CliError> {
    let id = meant(place, args.id.as_deref())?;
    let args = &args.further;
    let joins = args.provider.is_none() && args.model.is_none();
    let work = Work::Resume { session: id.to_string() };
    Further { id, work, args, joins }.carry_out(place, environment)
}

/// A session that goes on.
struct Further<'a> {
    id: SessionId,
    work: Work,
    args: &'a FurtherArgs,
    /// Whether what is under way without a driver is driven on as it is.
    joins: bool,
}

impl Further<'_> {
    /// Has it done by the project's kernel, shown as is fitting; gives the exit code.
    fn carry_out(self, place: &Place, environment: &Environment) -> Result<u8, CliError> {
        let args = self.args;
        let typed = Choice::typed(args.provider.as_deref(), args.model.as_deref())?;
        let caps = Caps::of(&args.caps, Settings::load(place, environment)?)?;
        let manner = Manner { json: args.json, said: said(args.said), stage: Stage::Stderr };
        let stop = Stop::listen()?;
        watched(manner, environment, &stop, &|watched| {
            let choice = match stored(place, self.id.as_str())?.driver {
                Some(driver) => typed.clone().or_recorded(&driver.provider, &driver.model),
                None => typed.clone(),
            };
            let driver = Some(Driver { model: choice.settle(environment)?, caps });
            let (work, handed) = (self.work.clone(), handed(place, environment, None)?);
            let surroundings = Surroundings::of(environment);
            let link = Link::new(place, environment);
            let follower = Follower::new(&link, watched).joining(self.joins);
            follower.carry_out(Submission { work, driver, handed, surroundings })?.task()
        })
    }
}
