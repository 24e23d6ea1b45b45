//! Has the bootstrap start the project's kernel, and waits until it is there.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::unanswered;
use crate::driver;
use crate::environment::Environment;
use crate::explain::{CliError, Explained};
use crate::place::{Place, private_directory};
use crate::settings::Settings;

/// The longest line that the bootstrap is listened to.
const MAX_LINE: u64 = 64 << 10;

/// What the bootstrap says.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    Ready { ready: bool },
    Trouble(Explained),
}

/// What the bootstrap is told that the kernel is to run in. Where the engine listens at a place of its own, it is not told:
/// it knows the usual ones.
fn runtime(place: &Place, environment: &Environment) -> Result<Vec<&'static str>, CliError> {
    let named = environment.docker_host.is_some() || environment.container_host.is_some();
    let engine = place.engine().filter(|_| !named).map(|chosen| chosen.engine.name());
    let contained = driver::wants_container(environment)?;
    Ok(engine.filter(|_| contained).map_or_else(Vec::new, |engine| vec!["--runtime", engine]))
}

/// Starts the kernel of a project and waits until it answers.
#[expect(clippy::disallowed_methods, reason = "the one place that starts the bootstrap")]
pub(super) fn kernel(place: &Place, environment: &Environment) -> Result<(), CliError> {
    let program = place.executable()?;
    let log = place.kernel_log();
    if let Some(dir) = log.parent() {
        private_directory(dir)?;
    }
    let socket = place.kernel_socket(environment);
    let settings = Settings::load(place, environment)?;
    let idle = settings.number("kernel.idle_seconds").unwrap_or_default();
    let mut command = Command::new(&program);
    command
        .arg("boot")
        .arg("--socket")
        .arg(&socket)
        .arg("--log")
        .arg(&log)
        .args(runtime(place, environment)?)
        .arg("--")
        .arg(&program)
        .arg("-C")
        .arg(place.project())
        .args(["kernel", "serve", "--idle", &idle.to_string(), "--socket"])
        .arg(&socket)
        // It outlives this client and every terminal; no secret of the client's environment goes with it.
        .current_dir("/")
        .env_clear()
        .envs(environment.for_kernel())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let failed = |source| CliError::File { action: "start", path: program.clone(), source };
    let mut boot = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(said) = boot.stdout.take() {
        let read = BufReader::new(said.take(MAX_LINE)).read_line(&mut line);
        read.map_err(failed)?;
    }
    // The bootstrap goes on by itself; one that ended is not left behind.
    let _ended = boot.try_wait();
    match serde_json::from_str(&line) {
        Ok(Said::Ready { ready: true }) => Ok(()),
        Ok(Said::Trouble(trouble)) => Err(CliError::Told(trouble)),
        Ok(Said::Ready { .. }) | Err(_) => Err(unanswered("its bootstrap ended without a word")),
    }
}
