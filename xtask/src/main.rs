//! `cargo xtask check [NAME…]`: runs the repository's checks and prints what they find. `cargo xtask write`: writes the pages
//! that follow from the source.
//!
//! Exit code 0: nothing found; 1: something found; 2: not understood.

use std::io::{self, Write};
use std::process::ExitCode;

use xtask::{CHECKS, Check, Repo, pages};

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let out = &mut io::stdout().lock();
    match arguments.split_first() {
        Some((command, names)) if command == "check" => match selected(names) {
            Ok(checks) => run(&checks, out),
            Err(unknown) => usage(out, &format!("there is no check called `{unknown}`")),
        },
        Some((command, [])) if command == "write" => write(out),
        Some((command, _)) => usage(out, &format!("there is no command called `{command}`")),
        None => usage(out, "a command is missing"),
    }
}

/// The checks with these names, or all of them; the first name that is none is the error.
fn selected(names: &[String]) -> Result<Vec<&'static Check>, &str> {
    if names.is_empty() {
        return Ok(CHECKS.iter().collect());
    }
    names
        .iter()
        .map(|name| CHECKS.iter().find(|check| check.name == name).ok_or(name.as_str()))
        .collect()
}

fn run(checks: &[&Check], out: &mut impl Write) -> io::Result<ExitCode> {
    let repo = Repo::here()?;
    let mut found = 0;
    for check in checks {
        let findings = (check.run)(&repo);
        let verdict = if findings.is_empty() { "ok" } else { "FAILED" };
        writeln!(out, "{:<12} {verdict:<7} {}", check.name, check.promise)?;
        for finding in &findings {
            writeln!(out, "  {finding}")?;
        }
        found += findings.len();
    }
    if found == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{found} findings")?;
    Ok(ExitCode::FAILURE)
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes pages")]
fn write(out: &mut impl Write) -> io::Result<ExitCode> {
    let repo = Repo::here()?;
    for (file, text) in pages(&repo) {
        std::fs::write(repo.root().join(file), text)?;
        writeln!(out, "{file}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn usage(out: &mut impl Write, problem: &str) -> io::Result<ExitCode> {
    let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    writeln!(
        out,
        "{problem}\nusage: cargo xtask check [NAME…] | write\nchecks: {}",
        names.join(", ")
    )?;
    Ok(ExitCode::from(2))
}
