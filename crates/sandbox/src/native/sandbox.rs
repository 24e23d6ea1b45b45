//! One sandbox of namespaces, seen from the kernel: how it is set up and taken away.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};

use crate::config::Config;
use crate::job::{Input, Job, Output, Watcher};
use crate::life::{Lived, Make};
use crate::limits::Limits;
use crate::runtime::RuntimeError;

use super::cgroup::{Group, Used};
use super::control::{self, Message, Order};
use super::hold::Namespaces;
use super::spec::Owner;
use super::supervise::{Feeding, Running, Streams, Supervisor, reap, serve};
use super::{Shared, outside, why};

/// What a sandbox of namespaces is made with.
pub(super) struct NativeMake {
    shared: Arc<Shared>,
    group: Arc<Group>,
}

/// A sandbox that does not run yet.
pub(super) fn create(
    shared: Arc<Shared>,
    config: Config,
    job: Job,
) -> Result<Lived<NativeMake>, RuntimeError> {
    let id = shared.instance.next_name();
    // The first process counts, too.
    let processes = config.limits().processes.saturating_add(1);
    let group = shared.groups.create(&id, &Limits { processes, ..*config.limits() });
    let group = group.map_err(io::Error::other);
    let group = Arc::new(group.map_err(outside("the control group cannot be made"))?);
    Ok(Lived::new(id, NativeMake { shared, group }, config, job))
}

impl Make for NativeMake {
    fn begin(
        &self,
        config: &Config,
        job: Job,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Supervisor, RuntimeError> {
        let ways = self.group.entrances();
        let ways = ways.map_err(outside("the control group cannot be entered"))?;
        let spec = self.shared.plan(config, &job, &self.group, &ways);
        // Before anything runs that could write to it.
        if config.volume().is_some_and(|volume| !volume.serve()) {
            return Err(lost("a volume serves one sandbox only"));
        }
        own_volume(config, spec.owner)?;
        let program = job.program.to_string_lossy().into_owned();
        let (stdio, streams) = streams(job)?;
        own_pipes(&stdio, &streams, spec.owner)?;
        let mut fds: Vec<OwnedFd> = stdio.into();
        if spec.shows_owners() {
            let owners = self.shared.owners.as_ref().map(|owners| owners.try_clone());
            fds.extend(owners.transpose().map_err(outside("a descriptor cannot be copied"))?);
        }
        fds.extend(ways.unified.into_iter().chain(ways.tasks));
        let order = Order::Sandbox(Box::new(spec));
        let socket = self.shared.maker.order(&order, fds);
        let socket = socket.map_err(outside("`sandbox-init` cannot be told what to do"))?;
        let stood = stand(&self.shared, &socket)?;
        let (first, volume, listeners) = stood.split();
        let hold = Namespaces::new(first, Arc::clone(&self.group));
        let running = Running::new(Box::new(hold), socket);
        let running = Arc::new(running.map_err(outside("the sandbox cannot be watched"))?);
        fill_volume(config, volume)?;
        Ok(Supervisor {
            running,
            streams,
            program,
            limits: *config.limits(),
            disk: on_disk(config)?,
            proxy: serve(config, listeners, &watcher)
                .map_err(outside("the sandbox's proxy cannot be started"))?,
            watcher,
        })
    }

    fn used(&self) -> Used {
        self.group.usage()
    }

    fn remove(&self) {
        // What cannot be removed now is swept up with the next start.
        let _left = self.group.remove();
    }
}

/// A sandbox that stands.
struct Stood {
    first: (u32, OwnedFd),
    volume: bool,
    rest: Vec<OwnedFd>,
}

impl Stood {
    /// Its first process, the volume's top directory and the proxy's listeners.
    fn split(mut self) -> ((u32, OwnedFd), Option<OwnedFd>, Vec<OwnedFd>) {
        let listeners = self.rest.split_off(usize::from(self.volume).min(self.rest.len()));
        (self.first, self.rest.pop(), listeners)
    }
}

/// Has something made that is no sandbox.
pub(super) fn ask(shared: &Shared, order: &Order) -> Result<OwnedFd, RuntimeError> {
    let socket = shared.maker.order(order, Vec::new());
    let socket = socket.map_err(outside("`sandbox-init` cannot be told what to do"))?;
    match control::receive(&socket).map_err(outside("`sandbox-init` does not answer"))? {
        Some((Message::Owners, mut fds)) => {
            fds.pop().ok_or_else(|| lost("the namespace did not come"))
        }
        Some((Message::Failed { step, errno }, _)) => {
            Err(why::explain(step, errno, &shared.options.program))
        }
        _ => Err(lost("`sandbox-init` did not answer as it should")),
    }
}

/// Waits until a sandbox stands, or says what failed.
fn stand(shared: &Shared, socket: &UnixStream) -> Result<Stood, RuntimeError> {
    let mut first = None;
    let failed = loop {
        match control::receive(socket) {
            Ok(Some((Message::Cloned { pid }, mut fds))) => first = fds.pop().map(|fd| (pid, fd)),
            Ok(Some((Message::Ready { volume }, rest))) => {
                socket.set_read_timeout(None).map_err(outside("a socket cannot be set"))?;
                let first = first.ok_or_else(|| lost("the sandbox did not hand itself over"))?;
                return Ok(Stood { first, volume, rest });
            }
            Ok(Some((Message::Failed { step, errno }, _))) => {
                break why::explain(step, errno, &shared.options.program);
            }
            Ok(Some(_) | None) => break lost("the sandbox ended while it was set up"),
            Err(error) => break outside("the sandbox does not answer while it is set up")(error),
        }
    };
    if let Some((_, first)) = first {
        let _gone = pidfd_send_signal(&first, Signal::KILL);
        reap(&first);
    }
    Err(failed)
}

/// The job's three streams and our ends of them.
pub(crate) fn streams(job: Job) -> Result<([OwnedFd; 3], Streams), RuntimeError> {
    let pipe = || {
        pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| outside("a pipe cannot be made")(error.into()))
    };
    let null = |flags| {
        let null = open("/dev/null", flags | OFlags::CLOEXEC, Mode::empty());
        null.map_err(|error| outside("/dev/null cannot be opened")(error.into()))
    };
    let (stdin, feeding) = match job.stdin {
        Input::Nothing => (null(OFlags::RDONLY)?, None),
        Input::From(fd) => (pipe_or_socket(fd)?, None),
        Input::Bytes(bytes) => {
            let (theirs, ours) = pipe()?;
            (theirs, Some(Feeding::new(ours, bytes).map_err(outside("a pipe cannot be set"))?))
        }
    };
    let (stdout, out) = match job.stdout {
        Output::Captured => {
            let (ours, theirs) = pipe()?;
            (theirs, Some(captured(ours)?))
        }
        Output::To(fd) => (pipe_or_socket(fd)?, None),
    };
    let (err, stderr) = pipe()?;
    Ok(([stdin, stdout, stderr], Streams { feeding, out, err: Some(captured(err)?) }))
}

/// Our end of a pipe that a job prints to. A job may open the pipe again and read from it itself, so that
/// what was announced is gone: nobody may wait for it then.
fn captured(end: OwnedFd) -> Result<File, RuntimeError> {
    rustix::io::ioctl_fionbio(&end, true)
        .map_err(|error| outside("a pipe cannot be set")(error.into()))?;
    Ok(File::from(end))
}

/// A terminal would be a way to type into the user's shell, and a file could be opened again for writing
/// through `/proc/self/fd`.
fn pipe_or_socket(fd: OwnedFd) -> Result<OwnedFd, RuntimeError> {
    let found = rustix::fs::fstat(&fd);
    let found = found.map_err(|error| outside("a descriptor cannot be looked at")(error.into()))?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if !kind.is_fifo() && !kind.is_socket() {
        return Err(lost("only pipes and sockets are handed to a sandbox"));
    }
    Ok(fd)
}

/// Gives the pipes that were made for the job to the user that stands behind the sandbox, who could not open
/// `/dev/stdout` and its like otherwise. What the caller handed over stays the caller's.
pub(crate) fn own_pipes(
    stdio: &[OwnedFd; 3],
    ours: &Streams,
    owner: Owner,
) -> Result<(), RuntimeError> {
    if !owner.privileged {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    let made = [ours.feeding.is_some(), ours.out.is_some(), ours.err.is_some()];
    for (end, _) in stdio.iter().zip(made).filter(|(_, made)| *made) {
        rustix::fs::fchown(end, Some(uid), Some(gid))
            .map_err(|error| outside("a pipe cannot be given to the sandbox")(error.into()))?;
    }
    Ok(())
}

/// Gives a volume on disk to the user that stands behind the sandbox.
pub(crate) fn own_volume(config: &Config, owner: Owner) -> Result<(), RuntimeError> {
    let directory = config.volume().and_then(|volume| volume.directory());
    let Some(directory) = directory.filter(|_| owner.privileged) else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    for name in ["", "upper", "work"] {
        rustix::fs::chown(directory.join(name), Some(uid), Some(gid))
            .map_err(|error| outside("a volume cannot be given to the sandbox")(error.into()))?;
    }
    Ok(())
}

pub(crate) fn fill_volume(config: &Config, made: Option<OwnedFd>) -> Result<(), RuntimeError> {
    let Some(volume) = config.volume() else { return Ok(()) };
    let content = match (made, volume.directory()) {
        (Some(made), None) => made,
        (None, Some(directory)) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let top = open(directory.join("upper"), flags, Mode::empty());
            top.map_err(|error| outside("a volume cannot be opened")(error.into()))?
        }
        _ => return Err(lost("the volume did not come")),
    };
    if volume.fill(content) { Ok(()) } else { Err(lost("the volume came twice")) }
}

/// The directory whose size has to be watched.
pub(crate) fn on_disk(config: &Config) -> Result<Option<OwnedFd>, RuntimeError> {
    let disk = config.volume().filter(|volume| volume.directory().is_some());
    let content = disk.and_then(|volume| volume.content().map(|fd| fd.try_clone_to_owned()));
    content.transpose().map_err(outside("a descriptor cannot be copied"))
}

pub(crate) fn lost(what: &'static str) -> RuntimeError {
    RuntimeError::Io { what, source: io::ErrorKind::Other.into() }
}
