//! `fluffy`: arguments in, work done by the other crates, answers out.
//!
//! **Invariant.** Nothing is decided here. What may happen is the kernel's business; this program
//! reads what was typed, puts the parts together and shows what came out.

mod answer_file;
mod args;
mod builders;
mod client;
mod commands;
mod control;
mod drive;
mod driver;
mod environment;
mod explain;
mod explanation;
mod extensions;
mod forge;
mod gate;
mod gateway;
mod inert;
mod interrupt;
mod keys;
mod landlock;
mod lines;
mod output;
mod pending;
mod place;
mod plugins;
mod policy_source;
mod provider_guest;
mod providers;
mod registries;
mod render;
mod review;
mod service;
mod settings;
mod shell;
mod status;
mod task_text;
mod terminal;
mod time;
mod toolchains;
mod walls;
mod wire;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use fluffy_sandbox::Guest;

use crate::args::{Args, Command, is_bare, with_run, with_tip};
use crate::environment::Environment;
use crate::output::Output;

fn main() -> ExitCode {
    // Before anything else, because it is done for every command that runs: it must be quick and alone.
    let first = std::env::args_os().nth(1);
    if first.as_ref().is_some_and(|first| first == "sandbox-init") {
        // Done for every file that is written, so that it is not even executed.
        let run = commands::file_host::run;
        return fluffy_sandbox::sandbox_init(&[Guest { name: "file-host", run }]);
    }
    // Likewise, in a container that an engine made.
    if first.as_ref().is_some_and(|first| first == "sandbox-entry") {
        let run = commands::file_host::run;
        return fluffy_sandbox::sandbox_entry(&[Guest { name: "file-host", run }]);
    }
    // Likewise, where something else than `sandbox-init` makes the sandboxes.
    if first.as_ref().is_some_and(|first| first == "file-host") {
        return ExitCode::from(commands::file_host::run());
    }
    // Likewise: it runs the programs of a command line in their sandbox.
    if first.as_ref().is_some_and(|first| first == "pipeline-host") {
        return ExitCode::from(fluffy_kernel::pipeline_host(std::io::stdin().lock()));
    }
    // Likewise: it knows nothing of this program but its name.
    if first.as_ref().is_some_and(|first| first == "boot") {
        return ExitCode::from(commands::boot::run());
    }
    // Likewise: it is to know nothing but what it is told.
    if first.is_some_and(|first| first == "provider-host") {
        return ExitCode::from(commands::provider_host::run());
    }
    let args = arguments();
    // A guest of the kernel, which must not know whose kernel it is: nothing else is read for it.
    if matches!(args.command, Command::PolicyHost) {
        return ExitCode::from(commands::policy_host::run());
    }
    // It lasts as long as the program does.
    let environment: &'static Environment = Box::leak(Box::new(Environment::read()));
    let mut output = Output::new(environment);
    match commands::run(args, environment, &mut output) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(output.explain(&error)),
    }
}

/// What was typed, understood; who typed something else is told, and the program ends.
fn arguments() -> Args {
    let typed: Vec<_> = std::env::args_os().collect();
    let mut words = with_run(typed.clone());
    let at_terminal = std::io::stdin().is_terminal();
    if at_terminal && is_bare(&words) {
        words.push("run".into());
    }
    let parsed = Args::command().try_get_matches_from(&words);
    let parsed = parsed.and_then(|matches| Args::from_arg_matches(&matches));
    let args = parsed.unwrap_or_else(|error| with_tip(error, &words, &Args::command()).exit());
    // Whoever gave the program itself no task wants to talk; `run` without one is a mistake.
    if at_terminal && words.len() != typed.len() { args.or_talk() } else { args }
}
