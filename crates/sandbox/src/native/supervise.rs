//! Watches a running sandbox: reads what it prints, keeps its limits, and says how it ended.
//!
//! One thread for each sandbox, which waits on everything at once and never for anything else.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};

use crate::config::Config;
use crate::job::{Captured, End, Limit, Outcome, Stream, Usage, Watcher};
use crate::limits::Limits;
use crate::proxy::{Listener, Options, Proxy, Sink};
use crate::runtime::{Failure, RuntimeError};

use super::cgroup::Used;
use super::control::{self, Message};
use super::disk::Weight;
use super::hold::Hold;
use super::{disk, lock};

/// How often a volume on disk is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How many times as long as a look takes nobody looks: where there is much to weigh, that is done less often.
const LOOKING: u32 = 10;

/// So much is left of a disk by all jobs that take more than they may in ways that nobody can weigh: files without a name
/// are in no directory.
const RESERVE: u64 = 1 << 30;

/// Bytes read from a stream at a time.
const CHUNK: usize = 64 << 10;

/// A sandbox that runs, as the kernel's other threads reach it.
pub(crate) struct Running {
    hold: Box<dyn Hold>,
    control: UnixStream,
    /// Wakes the thread that watches.
    wake: OwnedFd,
    told: Mutex<Told>,
    /// How often the first process said that a pause can begin.
    quiet: (Mutex<u64>, Condvar),
    logs: Mutex<(Captured, Captured)>,
}

/// What the sandbox was told from outside.
#[derive(Default)]
struct Told {
    stopped: bool,
    /// It is being killed, and not to be paused any more.
    ending: bool,
    kill_at: Option<Instant>,
    paused_at: Option<Instant>,
    /// Time spent in pauses that are over.
    paused_for: Duration,
}

/// Our ends of a job's streams.
pub(crate) struct Streams {
    pub(crate) feeding: Option<Feeding>,
    pub(crate) out: Option<File>,
    pub(crate) err: Option<File>,
}

/// Bytes on their way to a job's standard input.
pub(crate) struct Feeding {
    to: File,
    bytes: Vec<u8>,
    sent: usize,
}

/// The thread that watches a sandbox.
pub(crate) struct Supervisor {
    pub(crate) running: Arc<Running>,
    pub(crate) streams: Streams,
    pub(crate) program: String,
    pub(crate) limits: Limits,
    /// The volume, if it is on disk.
    pub(crate) disk: Option<OwnedFd>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) watcher: Arc<dyn Watcher>,
}

/// Answers at the sandbox's listeners, if it has any.
pub(crate) fn serve(
    config: &Config,
    listeners: Vec<OwnedFd>,
    watcher: &Arc<dyn Watcher>,
) -> io::Result<Option<Proxy>> {
    let Some(allowed) = config.network().allowed() else { return Ok(None) };
    let listeners = listeners.into_iter().map(Listener::new).collect::<io::Result<_>>()?;
    let watcher = Arc::clone(watcher);
    let sink: Sink = Arc::new(move |record| watcher.proxied(record));
    let upstream = config.network().upstream().cloned();
    let options = Options { upstream, ..Options::default() };
    Proxy::serve(listeners, Arc::clone(allowed), sink, options).map(Some)
}

impl Running {
    /// A sandbox by what holds it, with the socket that its first process listens to.
    pub(crate) fn new(hold: Box<dyn Hold>, control: UnixStream) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (told, quiet, logs) = Default::default();
        Ok(Self { hold, control, wake, told, quiet, logs })
    }

    pub(crate) fn kill(&self) {
        lock(&self.told).stopped = true;
        self.end();
    }

    pub(crate) fn stop(&self, grace: Duration) {
        let mut told = lock(&self.told);
        told.stopped = true;
        told.kill_at = now().checked_add(grace);
        drop(told);
        // A paused job could not obey.
        let _thawed = self.resume();
        self.signal(Signal::TERM);
        self.wake();
    }

    /// Tells whoever listens, gives it a second to save what it has to, and halts every process.
    pub(crate) fn pause(&self) -> io::Result<()> {
        if self.is_paused() {
            return Ok(());
        }
        self.announce();
        let mut told = lock(&self.told);
        if told.ending {
            // What is frozen does not die.
            return Err(io::ErrorKind::NotConnected.into());
        }
        if told.paused_at.is_some() {
            return Ok(());
        }
        if self.hold.freezes() {
            self.hold.freeze()?;
        } else {
            self.signal(Signal::STOP);
        }
        told.paused_at = Some(now());
        drop(told);
        self.wake();
        Ok(())
    }

    pub(crate) fn resume(&self) -> io::Result<()> {
        let mut told = lock(&self.told);
        let Some(since) = told.paused_at else { return Ok(()) };
        if self.hold.freezes() {
            self.hold.thaw()?;
        } else {
            self.signal(Signal::CONT);
        }
        self.send(control::RESUME_SIGNAL);
        told.paused_at = None;
        told.paused_for += now().duration_since(since);
        drop(told);
        self.wake();
        Ok(())
    }

    /// Has the first process tell of a pause, and waits until everybody is ready for it, a second at most.
    fn announce(&self) {
        let quiet = lock(&self.quiet.0);
        let before = *quiet;
        if !self.send(control::PAUSE_SIGNAL) {
            return;
        }
        let waited = self.quiet.1.wait_timeout_while(quiet, control::GRACE, |now| *now == before);
        drop(waited);
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.hold.pid()
    }

    pub(crate) fn is_paused(&self) -> bool {
        lock(&self.told).paused_at.is_some()
    }

    pub(crate) fn logs(&self) -> (Captured, Captured) {
        lock(&self.logs).clone()
    }

    /// Kills the first process, and with it all the others.
    fn end(&self) {
        let mut told = lock(&self.told);
        told.ending = true;
        let paused = told.paused_at.take();
        if let Some(since) = paused {
            told.paused_for += now().duration_since(since);
        }
        drop(told);
        self.hold.kill();
        if paused.is_some() && self.hold.freezes() {
            // What is frozen does not die.
            let _thawed = self.hold.thaw();
        }
    }

    /// Has the first process send a signal to all the others.
    fn signal(&self, signal: Signal) {
        if let Ok(byte) = u8::try_from(signal.as_raw()) {
            self.send(byte);
        }
    }

    /// Says something to the first process; whether it was there.
    fn send(&self, byte: u8) -> bool {
        (&self.control).write_all(&[byte]).is_ok()
    }

    fn wake(&self) {
        // A counter that is full wakes as well.
        let _woken = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing outlives the last who knows of it. Both find nothing if it was watched to its end.
        self.hold.kill();
        self.hold.reap();
    }
}

impl Feeding {
    pub(crate) fn new(to: OwnedFd, bytes: Vec<u8>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&to, true)?;
        Ok(Self { to: File::from(to), bytes, sent: 0 })
    }

    /// Sends what fits; false when there is nothing more to send, or nobody to read it.
    fn feed(&mut self) -> bool {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        match self.to.write(rest) {
            Ok(0) => false,
            Ok(sent) => {
                self.sent += sent;
                self.sent < self.bytes.len()
            }
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
            }
        }
    }
}

/// How far a watched sandbox has come.
#[derive(Default)]
struct Seen {
    /// Why we ended it.
    limit: Option<Limit>,
    ended: Option<(Option<i32>, Option<i32>, u64)>,
    /// What it had used when it ended by itself, where that cannot be known later.
    used: Option<Used>,
    failed: Option<RuntimeError>,
    /// When it is to be looked at whether the volume has grown.
    look_at: Option<Instant>,
    /// What was free on the volume's file system at first, and when it was last weighed.
    first: Option<Free>,
    last: Option<Free>,
}

/// What is free on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Free {
    bytes: u64,
    files: u64,
}

impl Free {
    fn on(volume: &OwnedFd) -> Option<Self> {
        let system = rustix::fs::fstatvfs(volume).ok()?;
        let bytes = system.f_bavail.saturating_mul(system.f_frsize);
        Some(Self { bytes, files: system.f_favail })
    }

    /// Whether more is gone than one job may take, and little is left for everybody.
    fn is_used_up(self, first: Self, limits: &Limits) -> bool {
        self.bytes < RESERVE && first.bytes.saturating_sub(self.bytes) > limits.disk.bytes()
    }
}

impl Supervisor {
    /// Watches to the end.
    pub(crate) fn watch(mut self) -> Result<Outcome, RuntimeError> {
        let begin = now();
        let mut seen = Seen::default();
        let mut told_all = false;
        loop {
            let timeout = self.keep_time(begin, &mut seen);
            let happened = self.wait(timeout, told_all);
            if happened.out {
                self.read(Stream::Out, &mut seen);
            }
            if happened.err {
                self.read(Stream::Err, &mut seen);
            }
            if happened.fed && !self.streams.feeding.as_mut().is_some_and(Feeding::feed) {
                self.streams.feeding = None;
            }
            if happened.message {
                told_all = !self.listen(&mut seen);
            }
            if happened.woken {
                let _empty = rustix::io::read(&self.running.wake, &mut [0; 8]);
            }
            if happened.ended || (told_all && self.running.hold.end().is_none()) {
                break;
            }
        }
        while self.listen(&mut seen) {}
        self.running.hold.reap();
        if seen.limit.is_none() {
            // What was written since somebody last looked.
            self.weigh(&mut seen);
        }
        self.drain(Stream::Out, &mut seen);
        self.drain(Stream::Err, &mut seen);
        drop(self.proxy.take());
        self.conclude(begin, seen)
    }

    /// Ends what has run too long or written too much; says how long nothing of that can happen.
    fn keep_time(&self, begin: Instant, seen: &mut Seen) -> Option<Duration> {
        let told = lock(&self.running.told);
        let (kill_at, paused, paused_for) =
            (told.kill_at, told.paused_at.is_some(), told.paused_for);
        drop(told);
        let time = now();
        let limit = self.limits.duration.map(|span| Duration::from_millis(span.ms()) + paused_for);
        let deadline = limit.filter(|_| !paused).and_then(|limit| begin.checked_add(limit));
        if deadline.is_some_and(|deadline| time >= deadline) {
            self.over(Limit::Duration, seen);
            return None;
        }
        if kill_at.is_some_and(|at| time >= at) {
            self.running.end();
            return None;
        }
        let mut next = [deadline, kill_at].into_iter().flatten().min();
        if self.disk.is_some() && seen.limit.is_none() {
            if seen.look_at.is_none_or(|at| time >= at) {
                self.look(seen);
                let looked = now();
                let pause = LOOK.max(looked.duration_since(time).saturating_mul(LOOKING));
                seen.look_at = looked.checked_add(pause);
            }
            next = [next, seen.look_at].into_iter().flatten().min();
        }
        next.map(|next| next.saturating_duration_since(now()))
    }

    /// Weighs the volume when something has changed on its file system, by whomever: one who makes room for somebody else
    /// does not hide what is written.
    fn look(&self, seen: &mut Seen) {
        let Some(free) = self.disk.as_ref().and_then(Free::on) else { return self.weigh(seen) };
        if seen.last.replace(free) == Some(free) {
            return;
        }
        let first = *seen.first.get_or_insert(free);
        if free.is_used_up(first, &self.limits) {
            self.over(Limit::Disk, seen);
        } else {
            self.weigh(seen);
        }
    }

    /// Ends what has written more than it may.
    fn weigh(&self, seen: &mut Seen) {
        let Some(volume) = &self.disk else { return };
        let most = Weight { bytes: self.limits.disk.bytes(), files: self.limits.files };
        if !disk::fits(volume.as_fd(), most) {
            self.over(Limit::Disk, seen);
        }
    }

    fn over(&self, limit: Limit, seen: &mut Seen) {
        seen.limit.get_or_insert(limit);
        self.running.end();
    }

    /// Waits until something happens.
    fn wait(&self, timeout: Option<Duration>, told_all: bool) -> Happened {
        let (input, output) = (PollFlags::IN, PollFlags::OUT);
        let mut fds = vec![PollFd::new(&self.running.wake, input)];
        let mut kinds = vec![Kind::Woken];
        if let Some(end) = self.running.hold.end() {
            fds.push(PollFd::from_borrowed_fd(end, input));
            kinds.push(Kind::Ended);
        }
        if !told_all {
            fds.push(PollFd::new(&self.running.control, input));
            kinds.push(Kind::Message);
        }
        if let Some(out) = &self.streams.out {
            fds.push(PollFd::new(out, input));
            kinds.push(Kind::Out);
        }
        if let Some(err) = &self.streams.err {
            fds.push(PollFd::new(err, input));
            kinds.push(Kind::Err);
        }
        if let Some(feeding) = &self.streams.feeding {
            fds.push(PollFd::new(&feeding.to, output));
            kinds.push(Kind::Fed);
        }
        // Rounded up, so that a deadline is over when the wait is.
        let timeout = timeout.map(|span| span + Duration::from_millis(1));
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        let mut happened = Happened::default();
        if poll(&mut fds, timeout.as_ref()).is_ok() {
            for (fd, kind) in fds.iter().zip(kinds) {
                if !fd.revents().is_empty() {
                    happened.mark(kind);
                }
            }
        }
        happened
    }

    /// Reads one message; false when there are no more.
    fn listen(&self, seen: &mut Seen) -> bool {
        match control::receive(&self.running.control) {
            Ok(Some((Message::Ended { code, signal, cpu_us }, _))) => {
                seen.ended = Some((code, signal, cpu_us));
                seen.used = self.running.hold.let_go();
                true
            }
            Ok(Some((Message::Quiet, _))) => {
                *lock(&self.running.quiet.0) += 1;
                self.running.quiet.1.notify_all();
                true
            }
            Ok(Some((Message::NoProgram { errno }, _))) => {
                let program = self.program.clone();
                let source = io::Error::from_raw_os_error(errno);
                seen.failed = Some(RuntimeError::Program { program, source });
                true
            }
            Ok(Some((Message::Failed { step, errno }, _))) => {
                let source = io::Error::from_raw_os_error(errno);
                seen.failed = Some(RuntimeError::Setup(Failure { step, source }));
                true
            }
            _ => false,
        }
    }

    /// Reads once from a stream.
    fn read(&mut self, stream: Stream, seen: &mut Seen) -> bool {
        let file = match stream {
            Stream::Out => &mut self.streams.out,
            Stream::Err => &mut self.streams.err,
        };
        let Some(source) = file else { return false };
        let mut chunk = [0; CHUNK];
        let bytes = match source.read(&mut chunk) {
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // Nothing there after all. At the end, whoever still holds the pipe is not the job.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => &[],
        };
        if bytes.is_empty() {
            *file = None;
            return false;
        }
        let room = {
            let mut logs = lock(&self.running.logs);
            let log = match stream {
                Stream::Out => &mut logs.0,
                Stream::Err => &mut logs.1,
            };
            let limit = usize::try_from(self.limits.captured.bytes()).unwrap_or(usize::MAX);
            let room = limit.saturating_sub(log.bytes.len()).min(bytes.len());
            log.bytes.extend_from_slice(bytes.get(..room).unwrap_or_default());
            log.cut |= room < bytes.len();
            room
        };
        if room > 0 {
            self.watcher.printed(stream, bytes.get(..room).unwrap_or_default());
        }
        if room < bytes.len() {
            self.over(Limit::Captured, seen);
            return false;
        }
        true
    }

    /// Reads what is left in a stream when all who could write to it are gone.
    fn drain(&mut self, stream: Stream, seen: &mut Seen) {
        if seen.limit != Some(Limit::Captured) {
            while self.read(stream, seen) {}
        }
    }

    fn conclude(self, begin: Instant, seen: Seen) -> Result<Outcome, RuntimeError> {
        let Seen { limit, ended, failed, used, .. } = seen;
        if let Some(error) = failed {
            return Err(error);
        }
        let told = lock(&self.running.told);
        let (stopped, paused_for) = (told.stopped, told.paused_for);
        drop(told);
        let used = used.unwrap_or_else(|| self.running.hold.used());
        let (code, signal, cpu_us) = ended.unwrap_or_default();
        let some = |count: Option<u64>| count.is_some_and(|count| count > 0);
        let mut reached: Vec<Limit> = limit.into_iter().collect();
        reached.extend(some(used.oom_kills).then_some(Limit::Memory));
        reached.extend(some(used.processes_refused).then_some(Limit::Processes));
        reached.extend((signal == Some(libc::SIGXFSZ)).then_some(Limit::Disk));
        let end = match (limit, code) {
            (Some(limit), _) => End::Limit(limit),
            (None, Some(0)) => End::Exited(0),
            (None, _) if stopped => End::Stopped,
            (None, code) => match (reached.first(), code) {
                (Some(limit), _) => End::Limit(*limit),
                (None, Some(code)) => End::Exited(code),
                // The first process was killed by somebody else: it had nothing to say.
                (None, None) => End::Signalled(signal.unwrap_or(libc::SIGKILL)),
            },
        };
        let (stdout, stderr) = self.running.logs();
        let usage = Usage {
            wall: now().duration_since(begin).saturating_sub(paused_for),
            cpu: used.cpu.or_else(|| ended.map(|_| Duration::from_micros(cpu_us))),
            memory: used.memory_peak,
        };
        Ok(Outcome { end, reached, stdout, stderr, usage })
    }
}

/// What a wait found.
#[derive(Default)]
struct Happened {
    ended: bool,
    woken: bool,
    message: bool,
    out: bool,
    err: bool,
    fed: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Ended,
    Woken,
    Message,
    Out,
    Err,
    Fed,
}

impl Happened {
    fn mark(&mut self, kind: Kind) {
        let flag = match kind {
            Kind::Ended => &mut self.ended,
            Kind::Woken => &mut self.woken,
            Kind::Message => &mut self.message,
            Kind::Out => &mut self.out,
            Kind::Err => &mut self.err,
            Kind::Fed => &mut self.fed,
        };
        *flag = true;
    }
}

/// Waits for a first process, whose end means the end of all.
pub(crate) fn reap(pidfd: &OwnedFd) {
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)
    {}
}

#[expect(clippy::disallowed_methods, reason = "deadlines of processes are real time")]
fn now() -> Instant {
    Instant::now()
}
