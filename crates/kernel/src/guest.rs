//! A guest of the kernel: a process in a sandbox with which it speaks frames over two pipes.
//!
//! **Invariant.** Whatever a guest does, the kernel waits no longer than it wants to and holds no more of what it
//! is sent than one frame of the agreed size. Dropping a guest ends it with all it has open.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_base::{Excerpt, FrameDecoder};
use fluffy_sandbox::{Config, Input, Job, Output, Runtime, RuntimeError, Sandbox, State};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::kernel::causes;
use crate::witness::Telling;
use crate::workshop::Life;

/// How much is read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// A process in a sandbox that speaks frames.
pub struct Guest {
    sandbox: Arc<dyn Sandbox>,
    /// Who is told of its end, unless somebody else tells it.
    telling: Option<Telling>,
    to: PipeWriter,
    from: PipeReader,
    decoder: FrameDecoder,
    /// What came, and how much of it has been read.
    arrived: Vec<u8>,
    read: usize,
}

/// The kernel's ends of the pipes of a job that is to be a guest.
pub(crate) struct Ends {
    to: PipeWriter,
    from: PipeReader,
}

/// Why a guest could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Its sandbox could not be made.
    #[error("it cannot be started")]
    Start(#[from] RuntimeError),
    /// There is no way to speak to it.
    #[error("it cannot be given pipes")]
    Pipes(#[source] io::Error),
    /// Nobody would remember it.
    #[error("it cannot be recorded, and is not started: {0}")]
    Untold(String),
}

/// Why speaking with a guest came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuestFailure {
    /// It did not answer when it should have.
    #[error("did not answer in time")]
    Late,
    /// Its pipes are closed.
    #[error("died")]
    Died,
    /// What it sent is no frame, too large a one, or one too many.
    #[error("did not speak as agreed")]
    Garbled,
}

impl Guest {
    /// Starts a job in a sandbox, its standard input and output being the pipes. Its frames have at most so many
    /// bytes. The witness is told before it starts; what cannot be told does not run.
    pub fn start(
        runtime: &dyn Runtime,
        config: Config,
        mut job: Job,
        frame_bytes: usize,
        telling: Telling,
    ) -> Result<Self, GuestError> {
        let ends = Ends::of(&mut job).map_err(GuestError::Pipes)?;
        let begun = Self::begin(runtime, config, job, &telling);
        let sandbox = begun.inspect_err(|error| {
            // It fails in any case, and whoever wanted it says so.
            let _told = telling.life(Life::Failed { why: &causes(error) });
        })?;
        let mut guest = Self::started(sandbox, ends, frame_bytes);
        guest.telling = Some(telling);
        Ok(guest)
    }

    fn begin(
        runtime: &dyn Runtime,
        config: Config,
        job: Job,
        telling: &Telling,
    ) -> Result<Arc<dyn Sandbox>, GuestError> {
        let words = job.args.first().map(|arg| arg.to_string_lossy());
        let name = Path::new(&job.program).file_name().map(|name| name.to_string_lossy());
        let words = name.into_iter().chain(words).collect::<Vec<_>>().join(" ");
        let program = Excerpt::new(&words, 100).to_string();
        let sandbox: Arc<dyn Sandbox> = runtime.create(config, job)?.into();
        let of = runtime.made_of()?;
        let made = Life::Made { id: sandbox.id(), program: &program, of: of.as_ref() };
        telling.life(made).map_err(GuestError::Untold)?;
        let traffic = telling.traffic();
        traffic.is_of(&sandbox);
        sandbox.start(Arc::new(traffic))?;
        Ok(sandbox)
    }

    /// How it came to its end, or that it is let go.
    fn end(&self) -> String {
        match self.sandbox.inspect().state {
            State::Creating | State::Running | State::Stopping => "it was let go".to_owned(),
            State::Failed | State::Cleanup | State::Destroyed => match self.sandbox.wait() {
                Ok(outcome) => outcome.end.to_string(),
                Err(error) => causes(&error),
            },
        }
    }

    /// The guest that a job with these pipes has become.
    pub(crate) fn started(sandbox: Arc<dyn Sandbox>, ends: Ends, frame_bytes: usize) -> Self {
        let (Ends { to, from }, decoder) = (ends, FrameDecoder::new(frame_bytes));
        Self { sandbox, telling: None, to, from, decoder, arrived: Vec::new(), read: 0 }
    }

    /// The number of the sandbox's first process, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.sandbox.inspect().pid
    }

    /// Waits until the guest may work, so long at most; whether it may. It does until it [rests](Self::rest).
    pub fn engage(&mut self, wait: Duration) -> Result<bool, GuestFailure> {
        self.sandbox.engage(wait).map_err(|_| GuestFailure::Died)
    }

    /// The guest has answered, and others may work in its place.
    pub fn rest(&mut self) {
        self.sandbox.rest();
    }

    /// Whether it stands still, so that its time does not count.
    pub(crate) fn is_paused(&self) -> bool {
        self.sandbox.inspect().paused
    }

    /// Writes what the guest takes of these bytes within the time: perhaps nothing.
    pub fn send(&mut self, bytes: &[u8], wait: Duration) -> Result<usize, GuestFailure> {
        let deadline = now() + wait;
        loop {
            match self.to.write(bytes) {
                Ok(0) => return Err(GuestFailure::Died),
                Ok(count) => return Ok(count),
                Err(error) => {
                    if !ready(&error, &self.to, PollFlags::OUT, deadline)? {
                        return Ok(0);
                    }
                }
            }
        }
    }

    /// The payload of the next frame, if it comes within the time.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, GuestFailure> {
        let deadline = now() + wait;
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            if let Some(payload) = self.unpack()? {
                return Ok(Some(payload));
            }
            match self.from.read(&mut buffer) {
                Ok(0) => return Err(GuestFailure::Died),
                Ok(count) => {
                    self.arrived.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    // A byte now and then is no frame.
                    if now() >= deadline {
                        return self.unpack();
                    }
                }
                Err(error) => {
                    if !ready(&error, &self.from, PollFlags::IN, deadline)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Sends a frame and waits for the one that answers it, until `deadline`.
    pub(crate) fn exchange(
        &mut self,
        frame: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, GuestFailure> {
        let left = || match deadline.saturating_duration_since(now()) {
            Duration::ZERO => Err(GuestFailure::Late),
            left => Ok(left),
        };
        let mut rest = frame;
        while !rest.is_empty() {
            let count = self.send(rest, left()?)?;
            rest = rest.get(count..).unwrap_or_default();
        }
        let payload = self.receive(left()?)?.ok_or(GuestFailure::Late)?;
        // More than was asked for is as wrong as what is no frame.
        if self.is_ahead() { Err(GuestFailure::Garbled) } else { Ok(payload) }
    }

    /// Whether more has come than was read.
    pub(crate) fn is_ahead(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn unpack(&mut self) -> Result<Option<Vec<u8>>, GuestFailure> {
        let mut bytes = self.arrived.get(self.read..).unwrap_or_default();
        let payload = self.decoder.next_frame(&mut bytes).map_err(|_| GuestFailure::Garbled)?;
        self.read = self.arrived.len().saturating_sub(bytes.len());
        if bytes.is_empty() {
            self.arrived.clear();
            self.read = 0;
        }
        Ok(payload)
    }
}

impl Ends {
    /// Makes pipes the standard input and output of a job.
    pub(crate) fn of(job: &mut Job) -> io::Result<Self> {
        let ((input, to), (from, output)) = (io::pipe()?, io::pipe()?);
        rustix::io::ioctl_fionbio(&to, true)?;
        rustix::io::ioctl_fionbio(&from, true)?;
        (job.stdin, job.stdout) = (Input::From(input.into()), Output::To(output.into()));
        Ok(Self { to, from })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let told = self.telling.take().map(|telling| (telling, self.end()));
        self.sandbox.remove();
        if let Some((telling, end)) = told {
            // It is gone whether or not that can be recorded.
            let _told = telling.life(Life::Gone { id: self.sandbox.id(), end: &end });
        }
    }
}

/// Waits until a pipe that said "not now" can be used; whether it can. Any other error is the guest's death.
fn ready(
    error: &io::Error,
    pipe: &impl AsFd,
    wanted: PollFlags,
    deadline: Instant,
) -> Result<bool, GuestFailure> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
        _ => return Err(GuestFailure::Died),
    }
    let left = deadline.saturating_duration_since(now());
    let Ok(limit) = Timespec::try_from(left) else { return Ok(false) };
    if left.is_zero() {
        return Ok(false);
    }
    match poll(&mut [PollFd::new(pipe, wanted)], Some(&limit)) {
        Ok(0) => Ok(false),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
        Err(_) => Err(GuestFailure::Died),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "limits how long a guest is waited for; a decision depends on it only by being a denial"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
