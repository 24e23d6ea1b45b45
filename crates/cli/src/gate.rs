//! Has a gate to an engine started for a kernel, before that is confined.
//!
//! **Invariant.** The kernel has no way to an engine but the gate's socket: where it could see the engine's own, it does
//! not start.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::driver::{Chosen, DriverError};
use crate::explain::{CliError, Explained};
use crate::place::Place;

/// What a gate says when it stands.
pub(crate) const STANDS: &str = "{\"gate\":true}";

/// The longest line that a gate is listened to.
const MAX_LINE: u64 = 64 << 10;

/// A gate that stands. It ends with the process that started it.
pub(crate) struct Standing {
    /// Its process.
    pub(crate) process: Child,
    /// What is behind it.
    pub(crate) chosen: Chosen,
}

/// Where the gate of a kernel listens: beside the kernel's own socket.
pub(crate) fn door(socket: &Path, kernel: u32) -> PathBuf {
    socket.with_extension(format!("{kernel}.gate"))
}

/// Starts the gate for the kernel that this process is about to become, if an engine was chosen; waits until it stands.
#[expect(clippy::disallowed_methods, reason = "the one place that starts a gate")]
pub(crate) fn start(place: &Place, socket: &Path) -> Result<Option<Standing>, CliError> {
    let Some(chosen) = place.engine().cloned() else { return Ok(None) };
    if rustix::process::geteuid().is_root() {
        return Err(DriverError::Root(chosen.engine).into());
    }
    let program = place.executable()?;
    let mut command = Command::new(&program);
    command
        .arg("-C")
        .arg(place.project())
        .args(["kernel", "gate", "--kernel", &std::process::id().to_string(), "--socket"])
        .arg(socket)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let failed = |source| CliError::File { action: "start", path: program.clone(), source };
    let mut process = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(said) = process.stdout.take() {
        let read = BufReader::new(said.take(MAX_LINE)).read_line(&mut line);
        read.map_err(failed)?;
    }
    if line.trim_end() == STANDS {
        return Ok(Some(Standing { process, chosen }));
    }
    let _ended = process.wait();
    let told = serde_json::from_str::<Explained>(&line);
    Err(told.map_or(DriverError::Gate(chosen.engine).into(), CliError::Told))
}

/// Refuses to go on where the engine's own socket is seen. Asked behind the walls.
pub(crate) fn is_the_only_way(chosen: &Chosen) -> Result<(), CliError> {
    let seen = chosen.sockets.iter().find(|socket| socket.symlink_metadata().is_ok());
    seen.map_or(Ok(()), |socket| Err(DriverError::Seen(socket.clone()).into()))
}
