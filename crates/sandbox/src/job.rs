//! What runs in a sandbox, and what became of it.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::limits::Limit;
use crate::proxy::Record;

/// One command.
#[derive(Debug)]
pub struct Job {
    /// The program: a path, or a name that is looked for in the sandbox's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// How it comes to run.
    pub start: Start,
    /// Variables beside the few that every sandbox sets. Nothing of the caller's environment is passed on.
    pub env: Vec<(OsString, OsString)>,
    /// Where programs are looked for after the usual places, as paths inside: what lies there takes no program's place.
    pub path_last: Vec<PathBuf>,
    /// Where it starts, as a path inside; the workspace if there is one, else `/tmp`.
    pub cwd: Option<PathBuf>,
    /// What it reads.
    pub stdin: Input,
    /// Where its standard output goes.
    pub stdout: Output,
}

impl Job {
    /// A command with nothing to read and its output captured.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            start: Start::Executed,
            env: Vec::new(),
            path_last: Vec::new(),
            cwd: None,
            stdin: Input::Nothing,
            stdout: Output::Captured,
        }
    }

    /// The kernel's own program as one of its guests, which is named by its one argument.
    pub fn guest(program: impl Into<OsString>, name: &str) -> Self {
        Self { start: Start::Guest, ..Self::new(program).args([name]) }
    }

    /// The same with these arguments behind those it has.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The same with a variable set.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// How a job comes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The program is executed.
    Executed,
    /// It is a guest of the kernel's own program. A driver that has this program at hand, confined already, need not
    /// execute it once more; any other executes it, so that it has to be shown.
    Guest,
}

/// What a job reads from its standard input.
#[derive(Debug)]
pub enum Input {
    /// Nothing: the end of the file at once.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Whatever comes out of this pipe or socket.
    From(OwnedFd),
}

/// Where a job's standard output goes.
#[derive(Debug)]
pub enum Output {
    /// Into the outcome, and to the watcher while it runs.
    Captured,
    /// To this pipe or socket. For guests that speak frames.
    To(OwnedFd),
}

/// One of the two streams that a job prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Sees what happens while a job runs. Called from the sandbox's own thread: a slow watcher slows that
/// job, nobody else.
pub trait Watcher: Send + Sync {
    /// Bytes that the job printed, as they came.
    fn printed(&self, _stream: Stream, _bytes: &[u8]) {}
    /// A request that the proxy answered, passed on or refused.
    fn proxied(&self, _record: &Record) {}
}

/// A watcher that does not look.
impl Watcher for () {}

/// What a job printed to one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// Whether there was more than the limit lets through.
    pub cut: bool,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled(i32),
    /// Because it ran into this limit.
    Limit(Limit),
    /// Because it was stopped or killed by us.
    Stopped,
}

/// What a job used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// From start to end, pauses not counted.
    pub wall: Duration,
    /// Processor time of all its processes, where it can be known.
    pub cpu: Option<Duration>,
    /// The most memory at a time, in bytes, where it can be known.
    pub memory: Option<u64>,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Limits that it ran into, also where it went on regardless.
    pub reached: Vec<Limit>,
    /// What it printed.
    pub stdout: Captured,
    /// What it printed to standard error.
    pub stderr: Captured,
    /// What it used.
    pub usage: Usage,
}

impl Outcome {
    /// Whether it ended by itself with code 0.
    pub fn is_success(&self) -> bool {
        self.end == End::Exited(0)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Self::Limit(limit) => write!(f, "ended: {limit}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duration => "the time limit was reached",
            Self::Memory => "the memory limit was reached",
            Self::Processes => "the limit of processes was reached",
            Self::Captured => "the limit of output was reached",
            Self::Disk => "the limit of disk space was reached",
        })
    }
}
