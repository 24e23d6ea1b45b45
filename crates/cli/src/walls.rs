//! What is around a project's kernel: namespaces that it makes itself, or a container that its maker waits for.
//!
//! Between a kernel in a container and its maker there is one line. By it the kernel is told to hurry, and with which
//! code it ended, it says there; its end is the end of the other side.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use fluffy_sandbox::contain;
use fluffy_sandbox::l1::{L1Options, enter, enter_container};
use rustix::net::sockopt::socket_peercred;

use crate::args::ServeArgs;
use crate::driver::DriverError;
use crate::environment::Environment;
use crate::explain::{CliError, FAILED};
use crate::gate::{self, Standing};
use crate::place::Place;
use crate::service::Desk;
use crate::wire::Surroundings;

/// The word that has a kernel hurry.
const HURRY: u8 = b'h';

/// A kernel's side of what is around it.
pub(crate) enum Walls {
    /// Nothing yet: it makes namespaces of its own.
    Native,
    /// A container.
    Container(Line),
}

/// A kernel's way to the maker of its container.
pub(crate) struct Line {
    stream: UnixStream,
    /// Where the gate is.
    gate: PathBuf,
}

impl Walls {
    /// What is around this process; and what it is to know of its surroundings, which it could not find out in a container.
    pub(crate) fn find(
        place: &Place,
        environment: &Environment,
        args: &ServeArgs,
    ) -> Result<(Self, Surroundings), CliError> {
        let Some(inside) = &args.inside else {
            return Ok((Self::Native, Surroundings::of(environment)));
        };
        let mut stream = UnixStream::connect(inside)?;
        speak_into(&place.kernel_log())?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut told = Vec::new();
        (&mut stream).take(u32::from_be_bytes(length).into()).read_to_end(&mut told)?;
        let surroundings = serde_json::from_slice(&told).map_err(io::Error::from)?;
        let gate = inside.with_extension("gate");
        Ok((Self::Container(Line { stream, gate }), surroundings))
    }

    /// Closes the walls around this process; gives the place with no other way to an engine than a gate, and the gate
    /// that this process started.
    pub(crate) fn close(
        &self,
        place: Place,
        environment: &Environment,
        args: &ServeArgs,
    ) -> Result<(Place, Option<Child>), CliError> {
        let options = place.confinement(environment, &args.socket)?;
        match self {
            Self::Native => {
                let gate = gate::start(&place, &args.socket)?;
                let _confined = enter(&options)?;
                let Some(Standing { process, chosen }) = gate else { return Ok((place, None)) };
                gate::is_the_only_way(&chosen)?;
                let door = gate::door(&args.socket, std::process::id());
                Ok((place.through(door), Some(process)))
            }
            Self::Container(line) => {
                let chosen = place.engine().cloned().ok_or(DriverError::NoContainer)?;
                let maker = socket_peercred(&line.stream).map_err(io::Error::from)?;
                let maker = maker.pid.as_raw_nonzero().get().unsigned_abs();
                let options = L1Options { keep: vec![line.stream.as_raw_fd()], ..options };
                enter_container(&options, maker)?;
                gate::is_the_only_way(&chosen)?;
                Ok((place.through(line.gate.clone()), None))
            }
        }
    }

    /// Tells the maker of the container with which code the kernel ends.
    pub(crate) fn ends(&self, code: u8) {
        if let Self::Container(Line { stream, .. }) = self {
            // One that is gone has nobody to tell it to.
            let _gone = (&*stream).write_all(&[code]);
        }
    }

    /// Has the kernel hurry when nobody would start it again, or its gate is gone.
    pub(crate) fn watch(&self, gate: Option<Child>, desk: &Arc<Desk>) -> io::Result<()> {
        match self {
            Self::Native => {
                if let Some(mut gate) = gate {
                    let cut_off = Arc::clone(desk);
                    beside("gate", move || {
                        // Whoever comes next gets a kernel with a gate.
                        let _ended = gate.wait();
                        cut_off.hurry();
                    })?;
                }
                let orphaned = Arc::clone(desk);
                beside("bootstrap", move || {
                    bootstrap_ends();
                    orphaned.hurry();
                })
            }
            Self::Container(line) => {
                let (hurried, mut told) = (Arc::clone(desk), line.stream.try_clone()?);
                beside("walls", move || {
                    let mut word = [0];
                    while told.read_exact(&mut word).is_ok() {
                        if word == [HURRY] {
                            hurried.hurry();
                        }
                    }
                    // As if this process had been killed together with its maker.
                    let own = rustix::process::getpid();
                    let _ends = rustix::process::kill_process(own, rustix::process::Signal::KILL);
                })
            }
        }
    }
}

/// Has the kernel run in a container, and waits for its end.
pub(crate) fn contain_kernel(
    place: &Place,
    environment: &Environment,
    args: &ServeArgs,
) -> Result<u8, CliError> {
    let line = gate::door(&args.socket, std::process::id()).with_extension("walls");
    let options = place.container(environment, args, line)?;
    let gate = gate::start(place, &args.socket)?.ok_or(DriverError::NoContainer)?;
    let contained = contain(&options)?;
    let told = serde_json::to_vec(&Surroundings::of(environment)).map_err(io::Error::from)?;
    let length = u32::try_from(told.len()).map_err(io::Error::other)?;
    let mut line = contained.line().ok_or(io::ErrorKind::NotConnected).map_err(io::Error::from)?;
    line.write_all(&[&length.to_be_bytes()[..], &told].concat())?;
    let tell = |name: &str, wait: Box<dyn FnOnce() + Send>| -> io::Result<()> {
        let mut line = contained.line().ok_or(io::ErrorKind::NotConnected)?.try_clone()?;
        beside(name, move || {
            wait();
            // One that is gone needs no word.
            let _gone = line.write_all(&[HURRY]);
        })
    };
    let mut process = gate.process;
    tell("gate", Box::new(move || drop(process.wait())))?;
    tell("bootstrap", Box::new(bootstrap_ends))?;
    Ok(contained.wait().unwrap_or(FAILED))
}

/// Waits for the end of the bootstrap: nothing is said at the standard input, and its end is that.
fn bootstrap_ends() {
    let _ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

fn beside(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Has what is printed go to the kernel's log, which the bootstrap made.
fn speak_into(log: &Path) -> Result<(), CliError> {
    let failed = |source| CliError::File { action: "write", path: PathBuf::from(log), source };
    let log = File::options().append(true).open(log).map_err(failed)?;
    rustix::stdio::dup2_stdout(&log).map_err(io::Error::from)?;
    rustix::stdio::dup2_stderr(&log).map_err(io::Error::from)?;
    Ok(())
}
