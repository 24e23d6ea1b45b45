//! What tests of the forge run: the first process of a sandbox, and the installer of the tools that check skills.
//! Never shipped.

use std::path::Path;
use std::process::{Command, ExitCode};

use fluffy_forge::{InstallStep, install};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(word), Some(place)) if word == "install" => {
            let installed = install(place.as_ref(), Path::new("python3"), &mut run);
            installed.map_or_else(failed, |_| ExitCode::SUCCESS)
        }
        _ => fluffy_kernel::sandbox_init(&[]),
    }
}

#[expect(clippy::print_stderr, reason = "whoever makes the tools for tests reads it")]
fn failed(error: fluffy_forge::ToolsError) -> ExitCode {
    eprintln!("{error}\n    fix: {}", error.fix());
    ExitCode::FAILURE
}

#[expect(clippy::disallowed_methods, reason = "the one place that makes the tools for tests")]
fn run(step: &InstallStep) -> Result<String, String> {
    let ran = Command::new(&step.program).args(&step.args).current_dir(&step.dir).output();
    let ran = ran.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match ran.status.success() {
        true => Ok(text(&ran.stdout)),
        false => Err(format!("{}{}", text(&ran.stdout), text(&ran.stderr))),
    }
}
