//! `fluffy kernel gate`: the door to an engine for a kernel that is confined. It stands outside, and ends with its kernel.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use fluffy_sandbox::Gate;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::args::GateArgs;
use crate::driver::DriverError;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::gate::{STANDS, door};
use crate::output::Output;
use crate::place::Place;

/// Stands until its kernel is gone. What goes wrong is written as the kernel reads it.
pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &GateArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let at = door(&args.socket, args.kernel.unsigned_abs());
    let opened = open(place, environment, args, &at);
    let (gate, listener, kernel) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let explained = error.explained();
            output.line(serde_json::to_string(&explained).map_err(io::Error::from)?)?;
            return Ok(explained.code);
        }
    };
    output.line(STANDS)?;
    output.flush()?;
    let serving = Arc::clone(&gate);
    std::thread::Builder::new().name("door".to_owned()).spawn(move || serving.serve(&listener))?;
    ended(&kernel)?;
    gate.outlast();
    remove(&at);
    // What the kernel had made is taken away with it, whatever ended it.
    let _swept = gate.sweep();
    Ok(DONE)
}

fn open(
    place: &Place,
    environment: &Environment,
    args: &GateArgs,
    at: &Path,
) -> Result<(Arc<Gate>, UnixListener, OwnedFd), CliError> {
    let chosen = place.engine().ok_or(DriverError::NoEngine)?;
    let kernel = Pid::from_raw(args.kernel);
    let kernel = kernel.filter(|kernel| getppid() == Some(*kernel));
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let handle = pidfd_open(kernel.ok_or_else(gone)?, PidfdFlags::empty());
    let handle = handle.map_err(io::Error::from)?;
    // Otherwise it ended in between, and its number may be somebody else's.
    if getppid() != kernel {
        return Err(gone().into());
    }
    let gate = Gate::open(place.gate(environment, chosen, &args.socket)?)?;
    forget_others(&args.socket);
    let failed = |source| CliError::File { action: "listen at", path: at.to_owned(), source };
    let listener = UnixListener::bind(at).map_err(failed)?;
    // Its directory is the user's own already.
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok((Arc::new(gate), listener, handle))
}

/// Waits for the end of a process.
fn ended(process: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(process, PollFlags::IN)], None) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes the doors of gates, and of makers of containers, that were killed.
fn forget_others(socket: &Path) {
    let (Some(directory), Some(stem)) = (socket.parent(), socket.file_stem()) else { return };
    let (Some(stem), Ok(entries)) = (stem.to_str(), std::fs::read_dir(directory)) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rest = name.strip_prefix(stem);
        let rest = rest.filter(|rest| rest.ends_with(".gate") || rest.ends_with(".walls"));
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if rest.is_some() && UnixStream::connect(&path).is_err_and(refused) {
            remove(&path);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that removes a gate's door")]
fn remove(door: &Path) {
    // One that is left is removed by the next gate.
    let _left = std::fs::remove_file(door);
}
