//! The seam: what every way of isolating a job promises.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Config, ConfigError};
use crate::engine::EngineError;
use crate::job::{Captured, Job, Outcome, Watcher};
use crate::volume::{Store, Volume};

/// Something that runs jobs in isolation. Every implementation keeps these promises, and the contract in
/// `testkit` holds it to them:
///
/// 1. a job cannot write to the project or anywhere else on the host, only to its volume;
/// 2. a job sees of the host what its configuration shows and the system's programs, nothing else;
/// 3. a job ends by its deadline, whatever it does;
/// 4. nothing a job started outlives it, nor the kernel;
/// 5. a job that cannot be confined as configured does not run;
/// 6. taking a sandbox away may be repeated and interrupted, and leaves nothing.
pub trait Runtime: Send + Sync {
    /// The name in configuration and records.
    fn name(&self) -> &'static str;

    /// Whether jobs can run now, and what is lacking.
    fn ping(&self) -> Result<Health, RuntimeError>;

    /// Waits until what is pending has got further, so long at most. Only a driver that says so has to.
    fn wait_for_progress(&self, _patience: Duration) {}

    /// A place for the changes of one sandbox.
    fn volume(&self, store: Store) -> Result<Volume, RuntimeError>;

    /// Makes a sandbox, which does not run yet.
    fn create(&self, config: Config, job: Job) -> Result<Box<dyn Sandbox>, RuntimeError>;

    /// What sandboxes are made of, where that is an image; waited for, if it is on its way. The same for as long as this
    /// lives.
    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError>;

    /// Takes away what kernels left that were killed: processes, mounts, groups, directories.
    fn sweep(&self) -> Swept;

    /// A sandbox from beginning to end.
    fn run(
        &self,
        config: Config,
        job: Job,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Outcome, RuntimeError> {
        let sandbox = self.create(config, job)?;
        let outcome = sandbox.run(watcher);
        sandbox.remove();
        outcome
    }
}

/// An image that sandboxes are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeOf {
    /// Who makes them.
    pub driver: &'static str,
    /// The image's name, as it was asked for.
    pub image: String,
    /// Its digest, which is what containers are made of.
    pub digest: String,
}

/// One sandbox. Dropping it removes it.
pub trait Sandbox: Send + Sync {
    /// Its name in records; nobody else's.
    fn id(&self) -> &str;

    /// Starts the job; it may be started once.
    fn start(&self, watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError>;

    /// Waits for the end of the job.
    fn wait(&self) -> Result<Outcome, RuntimeError>;

    /// Starts the job and waits for its end.
    fn run(&self, watcher: Arc<dyn Watcher>) -> Result<Outcome, RuntimeError> {
        self.start(watcher)?;
        self.wait()
    }

    /// Asks every process to end, and kills what is left after the grace.
    fn stop(&self, grace: Duration);

    /// Kills every process.
    fn kill(&self);

    /// Halts every process where it is. Whoever handles `SIGTSTP` is told before, and has until it stops, a second at most, to
    /// save what it has to. Paused time does not count towards the deadline.
    fn pause(&self) -> Result<(), RuntimeError>;

    /// Lets every process go on; whoever was told of the pause gets `SIGCONT`.
    fn resume(&self) -> Result<(), RuntimeError>;

    /// For a guest that waits to be spoken to: it is about to be, and will work. False if it may not yet after so long; whoever
    /// asks again has not lost its place.
    fn engage(&self, _wait: Duration) -> Result<bool, RuntimeError> {
        Ok(true)
    }

    /// A guest that was engaged has answered, and waits again.
    fn rest(&self) {}

    /// What it does now.
    fn inspect(&self) -> Inspection;

    /// What it printed so far.
    fn logs(&self) -> (Captured, Captured);

    /// Takes it away with everything it started. May be called again.
    fn remove(&self);
}

/// Where a sandbox is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Made, not started.
    Creating,
    /// Its job runs.
    Running,
    /// Its job was asked to end.
    Stopping,
    /// Its job could not be started or confined.
    Failed,
    /// Its job has ended; what it used is being given back.
    Cleanup,
    /// Nothing of it is left.
    Destroyed,
}

/// What a sandbox does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Where it is in its life.
    pub state: State,
    /// Whether it is paused.
    pub paused: bool,
    /// The number of its first process, while it runs on this machine.
    pub pid: Option<u32>,
    /// Processes and threads in it now, where that can be known.
    pub processes: Option<u64>,
    /// Memory it uses now, in bytes, where that can be known.
    pub memory: Option<u64>,
}

/// Whether jobs can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// They can; what the machine does not offer is listed, each with what stands in for it.
    Ready {
        /// What is weaker than it could be.
        notes: Vec<String>,
    },
    /// Not yet: something is being prepared.
    Pending {
        /// What.
        reason: String,
        /// How far, in hundredths, where that can be known.
        progress: Option<u8>,
    },
}

/// What a sweep took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were still alive.
    pub processes: usize,
    /// Control groups, containers and their volumes.
    pub groups: usize,
    /// Volumes and other directories.
    pub directories: usize,
    /// What could not be taken away.
    pub left: usize,
}

/// Why a sandbox could not be made or run.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The machine cannot isolate anything as it is set up.
    #[error("no sandbox can be made on this machine: {what}")]
    Unavailable {
        /// What is forbidden or missing.
        what: String,
        /// What to do about it.
        fix: String,
    },
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A step of setting it up failed; the job did not run.
    #[error("the sandbox could not be set up")]
    Setup(#[from] Failure),
    /// The program is not there or cannot be run.
    #[error("`{program}` cannot be run in the sandbox")]
    Program {
        /// The program as it was named.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// It was started twice, or asked for something that its state does not allow.
    #[error("the sandbox is {0:?}")]
    State(State),
    /// It had to make room for others, or was never let in.
    #[error("the sandbox gave way: {0}")]
    GaveWay(String),
    /// An engine did not do what it was to do.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The operating system refused something on the outside.
    #[error("{what}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// A step of the setting up that failed.
#[derive(Debug)]
pub struct Failure {
    /// Which.
    pub step: String,
    /// Why.
    pub source: io::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.step)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
