//! `fluffy plugin`: tools of others, installed after a person agreed, and run in sandboxes of their own.
//!
//! **Invariant.** What has an effect on what runs is done by the project's kernel. What only looks does not start one.

mod list;
mod new;
mod pack;
mod show;

use crate::args::{MannerArgs, PluginCommand, PluginNamedArgs};
use crate::commands::carried_out;
use crate::commands::run::said;
use crate::commands::skill::{input, manner as unsaid};
use crate::environment::Environment;
use crate::explain::{CliError, DONE, FAILED};
use crate::inert::inert;
use crate::interrupt::Stop;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::wire::{Handed, PluginAnswer, PluginWork, Submission, Surroundings, Work};

pub(crate) use self::list::listed;

pub(crate) fn run(
    place: &dyn Fn() -> Result<Place, CliError>,
    environment: &Environment,
    command: &PluginCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    let (work, manner) = match command {
        PluginCommand::New(args) => return new::run(environment, args, output),
        PluginCommand::List { rejected, json } => {
            return list::run(&place()?, environment, (*rejected, *json), output);
        }
        PluginCommand::Show(args) => return show::run(&place()?, environment, args, output),
        PluginCommand::Install { path, json } => {
            (PluginWork::Install { package: pack::text(path)? }, unsaid(*json))
        }
        PluginCommand::Remove(PluginNamedArgs { name, json }) => {
            (PluginWork::Remove { name: name.clone() }, unsaid(*json))
        }
        PluginCommand::Enable(PluginNamedArgs { name, json }) => {
            (PluginWork::Enable { name: name.clone() }, unsaid(*json))
        }
        PluginCommand::Disable { name, reason, json } => {
            (PluginWork::Disable { name: name.clone(), why: reason.clone() }, unsaid(*json))
        }
        PluginCommand::Call { tool, input: given, manner } => {
            (PluginWork::Call { tool: tool.clone(), input: input(given)? }, *manner)
        }
    };
    let answer = carry_out(&place()?, environment, work, manner)?;
    tell(&answer, manner.json, output)
}

/// Has the project's kernel do it.
fn carry_out(
    place: &Place,
    environment: &Environment,
    work: PluginWork,
    manner: MannerArgs,
) -> Result<PluginAnswer, CliError> {
    let stop = Stop::listen()?;
    let (surroundings, handed) = (Surroundings::of(environment), Handed::default());
    let submission = Submission { work: Work::Plugin(work), driver: None, handed, surroundings };
    carried_out((place, environment), &stop, said(manner.said), submission)?.plugin()
}

/// Shows what became of it.
fn tell(answer: &PluginAnswer, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let failed = matches!(answer, PluginAnswer::Called { error: Some(_), .. });
    let code = if failed { FAILED } else { DONE };
    if json {
        let document = match answer {
            PluginAnswer::Changed(done) => serde_json::to_string(done),
            PluginAnswer::Called { tool, output, error, entry } => {
                let told = serde_json::json!({
                    "tool": tool, "output": output, "error": error, "entry": entry,
                });
                serde_json::to_string(&told)
            }
        };
        output.line(document.map_err(std::io::Error::from)?)?;
        return Ok(code);
    }
    match answer {
        PluginAnswer::Changed(done) => {
            let what = output.paint(Tone::Good, &done.change);
            output.line(format!("{} {} is {what} ({})", done.name, done.version, done.package))?;
        }
        PluginAnswer::Called { output: Some(value), .. } => {
            output.line(serde_json::to_string_pretty(value).map_err(std::io::Error::from)?)?;
        }
        PluginAnswer::Called { error, .. } => {
            let why = error.as_deref().unwrap_or("it gave nothing");
            output.line(output.paint(Tone::Bad, &inert(why)))?;
        }
    }
    Ok(code)
}
