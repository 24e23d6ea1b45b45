//! What tests run as the first process of a sandbox, as the attacker inside it, and as the attacker's
//! surroundings where the sandbox is switched off. Never shipped.
//!
//! **Invariant.** One thread, as long as it forks.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an attacker does what the code under test must not, and stops at the first surprise"
)]

mod attack;
mod confine;
mod confined;
mod contained;
mod control;
mod drive;
mod guest;
mod listen;
mod spec;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("sandbox-init") => return fluffy_sandbox::sandbox_init(&guest::GUESTS),
        Some("sandbox-entry") => return fluffy_sandbox::sandbox_entry(&guest::GUESTS),
        Some("attack") => attack::run(&args[1..]),
        Some("drive") => drive::run(asked()),
        Some("control") => control::run(asked()),
        Some("confine") => return confine::run(args.get(1).expect("a file")),
        Some("contained") => return contained::run(&args[1..]),
        Some("report") => return guest::report().into(),
        other => panic!("the tester knows no `{other:?}`"),
    }
    ExitCode::SUCCESS
}

/// What a test wants, from standard input: arguments could be read by everybody.
fn asked<T: serde::de::DeserializeOwned>() -> T {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a test asks");
    serde_json::from_str(&line).expect("a test asks in JSON")
}
