//! One sandbox, seen from the kernel: made, started, waited for, taken away.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};

use crate::config::Config;
use crate::job::{Captured, Input, Job, Outcome, Output, Watcher};
use crate::limits::Limits;
use crate::runtime::{Inspection, RuntimeError, Sandbox, State};

use super::cgroup::Group;
use super::control::{self, Message, Order};
use super::spec::Spec;
use super::supervise::{Feeding, Running, Streams, Supervisor, reap, serve};
use super::{Shared, lock, outside, why};

/// One sandbox.
pub(super) struct NativeSandbox {
    id: String,
    shared: Arc<Shared>,
    group: Arc<Group>,
    life: Arc<(Mutex<Life>, Condvar)>,
}

/// Where a sandbox is in its life, with what it holds there.
struct Life {
    state: State,
    /// Until it is started.
    plan: Option<(Config, Job)>,
    /// From its start until it is taken away.
    running: Option<Arc<Running>>,
    /// Whether it was to be killed while it was being set up.
    killed: bool,
    /// What it had printed when it was taken away.
    logs: (Captured, Captured),
    /// What it holds while it runs: volumes are not removed under it.
    held: Option<Config>,
    outcome: Option<Result<Outcome, RuntimeError>>,
}

impl Life {
    fn kill(&mut self) {
        match &self.running {
            Some(running) => running.kill(),
            // While it is set up there is nothing to kill yet, and there will be.
            None => self.killed |= self.state == State::Creating && self.plan.is_none(),
        }
    }
}

impl NativeSandbox {
    pub(super) fn new(shared: Arc<Shared>, config: Config, job: Job) -> Result<Self, RuntimeError> {
        let id = shared.instance.next_name();
        // The first process counts, too.
        let processes = config.limits().processes.saturating_add(1);
        let group = shared.groups.create(&id, &Limits { processes, ..*config.limits() });
        let group = group.map_err(io::Error::other);
        let group = Arc::new(group.map_err(outside("the control group cannot be made"))?);
        let life = Life {
            state: State::Creating,
            plan: Some((config, job)),
            running: None,
            killed: false,
            logs: <(Captured, Captured)>::default(),
            held: None,
            outcome: None,
        };
        Ok(Self { id, shared, group, life: Arc::new((Mutex::new(life), Condvar::new())) })
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life.0)
    }

    fn running(&self) -> Option<Arc<Running>> {
        self.life().running.clone()
    }

    /// Sets it up and starts the job.
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
        own_volume(config, &spec)?;
        let program = job.program.to_string_lossy().into_owned();
        let (stdio, streams) = streams(job)?;
        own_pipes(&stdio, &streams, &spec)?;
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
        let running = Running::new(first, socket, Arc::clone(&self.group));
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

    /// Starts the job; whoever called has to watch it.
    fn set_running(&self, watcher: Arc<dyn Watcher>) -> Result<Supervisor, RuntimeError> {
        let mut life = self.life();
        let state = life.state;
        let (config, job) = life.plan.take().ok_or(RuntimeError::State(state))?;
        drop(life);
        let begun = self.begin(&config, job, watcher);
        let mut life = self.life();
        if life.state == State::Destroyed {
            // It was taken away meanwhile: what was begun ends with its last owner.
            drop(life);
            drop(begun);
            self.remove();
            return Err(RuntimeError::State(State::Destroyed));
        }
        let supervisor = begun.inspect_err(|_| life.state = State::Failed)?;
        life.state = State::Running;
        life.running = Some(Arc::clone(&supervisor.running));
        life.held = Some(config);
        if life.killed {
            supervisor.running.kill();
        }
        Ok(supervisor)
    }
}

/// Watches a job to its end, and has everybody know of it.
fn watch_to_end((life, ended): &(Mutex<Life>, Condvar), supervisor: Supervisor) {
    let outcome = supervisor.watch();
    let mut life = lock(life);
    life.state = if outcome.is_ok() { State::Cleanup } else { State::Failed };
    life.outcome = Some(outcome);
    ended.notify_all();
}

impl Sandbox for NativeSandbox {
    fn id(&self) -> &str {
        &self.id
    }

    fn start(&self, watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError> {
        let supervisor = self.set_running(watcher)?;
        let (life, running) = (Arc::clone(&self.life), Arc::clone(&supervisor.running));
        let watched = thread::Builder::new().name(self.id.clone()).spawn(move || {
            watch_to_end(&life, supervisor);
        });
        if let Err(error) = watched {
            running.kill();
            self.life().state = State::Failed;
            self.life.1.notify_all();
            return Err(outside("no thread can be started")(error));
        }
        Ok(())
    }

    /// On the calling thread, which has nothing else to do: no other one has to be started and woken.
    fn run(&self, watcher: Arc<dyn Watcher>) -> Result<Outcome, RuntimeError> {
        let supervisor = self.set_running(watcher)?;
        watch_to_end(&self.life, supervisor);
        self.wait()
    }

    fn wait(&self) -> Result<Outcome, RuntimeError> {
        let mut life = self.life();
        loop {
            let state = life.state;
            match life.outcome.take() {
                Some(Ok(outcome)) => {
                    life.outcome = Some(Ok(outcome.clone()));
                    return Ok(outcome);
                }
                Some(Err(error)) => return Err(error),
                None if matches!(state, State::Running | State::Stopping) => {
                    life = self.life.1.wait(life).unwrap_or_else(PoisonError::into_inner);
                }
                None => return Err(RuntimeError::State(state)),
            }
        }
    }

    fn stop(&self, grace: Duration) {
        let mut life = self.life();
        if let (State::Running, Some(running)) = (life.state, life.running.clone()) {
            life.state = State::Stopping;
            drop(life);
            running.stop(grace);
        }
    }

    fn kill(&self) {
        self.life().kill();
    }

    fn pause(&self) -> Result<(), RuntimeError> {
        let state = self.life().state;
        let running = self.running().filter(|_| state == State::Running);
        let running = running.ok_or(RuntimeError::State(state))?;
        running.pause().map_err(outside("the sandbox cannot be paused"))
    }

    fn resume(&self) -> Result<(), RuntimeError> {
        let state = self.life().state;
        let running = self.running().ok_or(RuntimeError::State(state))?;
        running.resume().map_err(outside("the sandbox cannot be resumed"))
    }

    fn inspect(&self) -> Inspection {
        let (state, running) = {
            let life = self.life();
            (life.state, life.running.clone())
        };
        let usage = self.group.usage();
        Inspection {
            state,
            paused: running.as_ref().is_some_and(|running| running.is_paused()),
            pid: running.filter(|_| state == State::Running).map(|running| running.pid()),
            processes: usage.processes,
            memory: usage.memory,
        }
    }

    fn logs(&self) -> (Captured, Captured) {
        let life = self.life();
        life.running.as_ref().map_or_else(|| life.logs.clone(), |running| running.logs())
    }

    fn remove(&self) {
        self.kill();
        let mut life = self.life();
        while matches!(life.state, State::Running | State::Stopping) {
            life = self.life.1.wait(life).unwrap_or_else(PoisonError::into_inner);
        }
        life.state = State::Destroyed;
        life.plan = None;
        life.held = None;
        if let Some(running) = life.running.take() {
            life.logs = running.logs();
        }
        drop(life);
        // What cannot be removed now is swept up with the next start.
        let _left = self.group.remove();
    }
}

impl Drop for NativeSandbox {
    fn drop(&mut self) {
        self.remove();
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
fn streams(job: Job) -> Result<([OwnedFd; 3], Streams), RuntimeError> {
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
fn own_pipes(stdio: &[OwnedFd; 3], ours: &Streams, spec: &Spec) -> Result<(), RuntimeError> {
    if !spec.owner.privileged {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(spec.owner.uid), Gid::from_raw(spec.owner.gid));
    let made = [ours.feeding.is_some(), ours.out.is_some(), ours.err.is_some()];
    for (end, _) in stdio.iter().zip(made).filter(|(_, made)| *made) {
        rustix::fs::fchown(end, Some(uid), Some(gid))
            .map_err(|error| outside("a pipe cannot be given to the sandbox")(error.into()))?;
    }
    Ok(())
}

/// Gives a volume on disk to the user that stands behind the sandbox.
fn own_volume(config: &Config, spec: &Spec) -> Result<(), RuntimeError> {
    let directory = config.volume().and_then(|volume| volume.directory());
    let Some(directory) = directory.filter(|_| spec.owner.privileged) else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(spec.owner.uid), Gid::from_raw(spec.owner.gid));
    for name in ["", "upper", "work"] {
        rustix::fs::chown(directory.join(name), Some(uid), Some(gid))
            .map_err(|error| outside("a volume cannot be given to the sandbox")(error.into()))?;
    }
    Ok(())
}

fn fill_volume(config: &Config, made: Option<OwnedFd>) -> Result<(), RuntimeError> {
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
fn on_disk(config: &Config) -> Result<Option<OwnedFd>, RuntimeError> {
    let disk = config.volume().filter(|volume| volume.directory().is_some());
    let content = disk.and_then(|volume| volume.content().map(|fd| fd.try_clone_to_owned()));
    content.transpose().map_err(outside("a descriptor cannot be copied"))
}

fn lost(what: &'static str) -> RuntimeError {
    RuntimeError::Io { what, source: io::ErrorKind::Other.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn life(plan: Option<(Config, Job)>) -> Life {
        Life {
            state: State::Creating,
            plan,
            running: None,
            killed: false,
            logs: <(Captured, Captured)>::default(),
            held: None,
            outcome: None,
        }
    }

    #[test]
    fn what_is_killed_while_it_is_set_up_does_not_get_away() {
        let mut being_set_up = life(None);
        being_set_up.kill();
        assert!(being_set_up.killed);
        // Before that there is nothing that could be killed.
        let mut waiting = life(Some((Config::of(Template::CodeExecutor), Job::new("true"))));
        waiting.kill();
        assert!(!waiting.killed);
    }
}
