//! `fluffy`: arguments in, work done by the other crates, answers out.
//!
//! **Invariant.** Nothing is decided here. What may happen is the kernel's business; this program
//! reads what was typed, puts the parts together and shows what came out.

mod args;
mod commands;
mod control;
mod environment;
mod explain;
mod explanation;
mod extensions;
mod inert;
mod interrupt;
mod landlock;
mod lines;
mod output;
mod place;
mod policy_source;
mod terminal;
mod time;
mod toolchains;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::environment::Environment;
use crate::output::Output;

fn main() -> ExitCode {
    // Before anything else, because it is done for every command that runs: it must be quick and alone.
    if std::env::args_os().nth(1).is_some_and(|first| first == "sandbox-init") {
        return fluffy_sandbox::sandbox_init();
    }
    let args = Args::parse();
    // A guest of the kernel, which must not know whose kernel it is: nothing else is read for it.
    if matches!(args.command, Command::PolicyHost) {
        return ExitCode::from(commands::policy_host::run());
    }
    let environment = Environment::read();
    let mut output = Output::new(&environment);
    match commands::run(args, &environment, &mut output) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(output.explain(&error)),
    }
}
