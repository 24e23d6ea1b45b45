//! Where the jobs of a session run: each in a sandbox that sees the project with the session's changes.
//!
//! **Invariant.** No job changes the project or the session. What it leaves is [`Produced`]: read, bounded and
//! kept by hash, for the session to judge and take.

mod command;
mod edit;
mod environments;
mod file_host;
mod job_limits;
mod layer;
mod patches;
mod printed;
mod produce;
mod replace;
mod script;
mod sight;
mod standby;
mod testing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fluffy_base::{Excerpt, ProjectPath};
use fluffy_ledger::EventType;
use fluffy_sandbox::{
    Changes, Config, ConfigError, Job, Limits, MadeOf, Outcome, Runtime, RuntimeError, Sandbox,
    Store, Template, UserLimits, Volume, Watcher, Workspace,
};

pub use self::command::{CommandError, CommandLine, CommandRun};
pub use self::edit::{Edit, EditError};
pub(crate) use self::environments::Environments;
pub use self::file_host::{Like, MAX_EDIT_BYTES, Refused, file_host};
pub use self::job_limits::JobLimits;
pub(crate) use self::job_limits::{LimitedJob, setting_hint};
pub(crate) use self::layer::Layer;
pub use self::patches::{Current, Originals};
pub use self::printed::Printed;
pub use self::produce::{NotTaken, ProduceError, Taken, Taking};
pub use self::script::{
    CommandScript, LineError, MAX_LINE_BYTES, ProgramCall, ScriptStep, parse_line, pipeline_host,
};
pub(crate) use self::sight::ENVIRONMENT as JOB_ENVIRONMENT;
pub use self::sight::{Sight, SightError};
use self::standby::Standby;
pub use self::testing::{Measured, SuiteRun, TestPlan, TestSummary, Tested, TestsError};
use crate::files::Stored;
use crate::{Note, Witness};

/// What a workshop is made of.
#[derive(Clone)]
pub struct WorkshopOptions {
    /// What isolates jobs.
    pub runtime: Arc<dyn Runtime>,
    /// The project's root.
    pub project: PathBuf,
    /// The user's home directory, which jobs see empty and private.
    pub home: Option<PathBuf>,
    /// Directories of the host that jobs see: toolchains.
    pub shown: Vec<PathBuf>,
    /// This program, which is its own guest.
    pub program: PathBuf,
}

/// Runs the jobs of one session.
pub struct Workshop {
    options: WorkshopOptions,
    running: Mutex<BTreeMap<String, Arc<dyn Sandbox>>>,
    closed: AtomicBool,
    reporter: OnceLock<Reporter>,
    lost: OnceLock<Lost>,
    /// Who remembers what commands ask of the network.
    network: OnceLock<Arc<Witness>>,
    /// What the user's settings give commands and tests.
    limits: JobLimits,
    /// The guest that stands ready for the next edit.
    standby: Standby,
    /// What package managers installed for this session.
    environments: Environments,
}

/// Why no sandbox can be made any more: the machine does not let it, or the engine that makes them is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What was found.
    pub why: String,
    /// What helps.
    pub fix: String,
}

/// Who is told what becomes of sandboxes. What cannot be told does not run.
type Reporter = Box<dyn Fn(Life<'_>) -> Result<(), String> + Send + Sync>;

/// Such a one, lent for one job.
type Told<'a> = &'a dyn Fn(Life<'_>) -> Result<(), String>;

/// What becomes of a sandbox.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Life<'a> {
    /// It is made, and its job about to start.
    Made {
        /// Its name in records.
        id: &'a str,
        /// The program that will run.
        program: &'a str,
        /// What it is made of, if that is an image.
        of: Option<&'a MadeOf>,
    },
    /// Nothing of it is left.
    Gone {
        /// Its name in records.
        id: &'a str,
        /// How its job ended.
        end: &'a str,
    },
    /// It could not be made, or its job not started.
    Failed {
        /// Why not.
        why: &'a str,
    },
}

/// One job with what it sees and what is kept of it.
pub(crate) struct Order<'a> {
    /// Directories laid over the project, the lowest first.
    pub(crate) layers: &'a [PathBuf],
    /// Where its changes go; nowhere, and the workspace is read-only.
    pub(crate) store: Option<Store>,
    /// More of the host that it sees.
    pub(crate) shown: &'a [PathBuf],
    /// What the user's settings give it instead of what its template gives.
    pub(crate) user_limits: Option<UserLimits>,
    /// No more than this.
    pub(crate) limits: Option<Limits>,
    /// The command.
    pub(crate) job: Job,
    /// Who sees what it prints.
    pub(crate) watcher: Arc<dyn Watcher>,
}

/// What became of a job.
#[derive(Debug)]
pub struct Ran {
    /// How it ended and what it printed.
    pub outcome: Outcome,
    /// What it left, if anything is kept of it.
    pub volume: Option<Volume>,
    /// The sandbox's name in records.
    pub sandbox: String,
}

/// One file that a job produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Produced {
    /// This file, with contents that are kept.
    File(ProjectPath, Stored),
    /// Nothing any more where this file was.
    Nothing(ProjectPath),
}

impl Produced {
    /// Which.
    pub fn path(&self) -> &ProjectPath {
        match self {
            Self::File(path, _) | Self::Nothing(path) => path,
        }
    }
}

/// Why a job did not run.
#[derive(Debug, thiserror::Error)]
pub enum WorkshopError {
    /// The task was cancelled.
    #[error("the task was cancelled")]
    Cancelled,
    /// It could not be recorded.
    #[error("{0}")]
    Untold(String),
    /// The sandbox could not be made.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It would not be what it should.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Workshop {
    /// A workshop.
    pub fn new(options: WorkshopOptions) -> Self {
        Self {
            options,
            running: Mutex::default(),
            closed: AtomicBool::new(false),
            reporter: OnceLock::new(),
            lost: OnceLock::new(),
            network: OnceLock::new(),
            limits: JobLimits::default(),
            standby: Standby::default(),
            environments: Environments::default(),
        }
    }

    /// What package managers installed for this session.
    pub(crate) fn environments(&self) -> &Environments {
        &self.environments
    }

    /// The project's root, as jobs see it.
    pub(crate) fn project(&self) -> &Path {
        &self.options.project
    }

    /// What it is made of.
    pub(crate) fn options(&self) -> &WorkshopOptions {
        &self.options
    }

    /// This program, as jobs see it once its directory is shown.
    pub(crate) fn program(&self) -> &Path {
        &self.options.program
    }

    /// Runs a job to its end.
    pub(crate) fn run(&self, order: Order<'_>) -> Result<Ran, WorkshopError> {
        let runtime = &self.options.runtime;
        let volume = order.store.map(|store| runtime.volume(store)).transpose()?;
        let config = self.config(&order, volume.clone())?;
        let job = self.environments.activated(order.job, &self.options.project);
        self.carry_out(config, volume, job, order.watcher)
    }

    /// Runs a job in a sandbox of this configuration, whose changes go to `volume`.
    fn carry_out(
        &self,
        config: Config,
        volume: Option<Volume>,
        job: Job,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Ran, WorkshopError> {
        let tell: Told<'_> = &|life| self.tell(life);
        self.carry_out_by(config, volume, job, tell, |sandbox| sandbox.run(watcher))
    }

    /// The same for a job that somebody drives to its end, and of which somebody else may be told.
    pub(crate) fn carry_out_by(
        &self,
        config: Config,
        volume: Option<Volume>,
        job: Job,
        tell: Told<'_>,
        drive: impl FnOnce(&Arc<dyn Sandbox>) -> Result<Outcome, RuntimeError>,
    ) -> Result<Ran, WorkshopError> {
        let program = Excerpt::new(&job.program.to_string_lossy(), 100).to_string();
        let made = self.options.runtime.create(config, job);
        let made = made.inspect_err(|error| self.fails(tell, error));
        let sandbox: Arc<dyn Sandbox> = made?.into();
        self.attend(&sandbox, volume, (&program, tell), || Ok(drive(&sandbox)?))
    }

    /// Makes a sandbox that stays until it is dismissed, and is ended with the others. It is not started yet.
    pub(crate) fn keep(
        &self,
        config: Config,
        job: Job,
        tell: Told<'_>,
    ) -> Result<Arc<dyn Sandbox>, WorkshopError> {
        let program = Excerpt::new(&job.program.to_string_lossy(), 100).to_string();
        let made = self.options.runtime.create(config, job);
        let sandbox: Arc<dyn Sandbox> = made.inspect_err(|error| self.fails(tell, error))?.into();
        let id = self.begins(&sandbox, &program, tell)?;
        self.running().insert(id, Arc::clone(&sandbox));
        if self.is_closed() {
            self.dismiss(&sandbox);
            return Err(WorkshopError::Cancelled);
        }
        Ok(sandbox)
    }

    /// Takes away a sandbox that stayed.
    pub(crate) fn dismiss(&self, sandbox: &Arc<dyn Sandbox>) {
        sandbox.remove();
        self.running().remove(sandbox.id());
    }

    /// Whether every job was ended, and none is run any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Has a sandbox do its work, and tells of the program in it.
    fn attend(
        &self,
        sandbox: &Arc<dyn Sandbox>,
        volume: Option<Volume>,
        (program, tell): (&str, Told<'_>),
        work: impl FnOnce() -> Result<Outcome, WorkshopError>,
    ) -> Result<Ran, WorkshopError> {
        let id = self.begins(sandbox, program, tell)?;
        self.running().insert(id.clone(), Arc::clone(sandbox));
        // Whoever closes looks at what is running after saying so: one of the two sees the other.
        let outcome =
            if self.closed.load(Ordering::SeqCst) { Err(WorkshopError::Cancelled) } else { work() };
        sandbox.remove();
        self.running().remove(&id);
        match &outcome {
            Ok(outcome) => {
                let end = outcome.end.to_string();
                tell(Life::Gone { id: &id, end: &end }).map_err(WorkshopError::Untold)?;
            }
            Err(WorkshopError::Runtime(error)) => self.fails(tell, error),
            Err(error) => tell_failure(tell, error),
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(WorkshopError::Cancelled);
        }
        Ok(Ran { outcome: outcome?, volume, sandbox: id })
    }

    /// Tells that a sandbox was made, of what and for whom; gives its id.
    fn begins(
        &self,
        sandbox: &Arc<dyn Sandbox>,
        program: &str,
        tell: Told<'_>,
    ) -> Result<String, WorkshopError> {
        let id = sandbox.id().to_owned();
        let of = self.options.runtime.made_of().inspect_err(|error| self.fails(tell, error))?;
        let made = Life::Made { id: &id, program, of: of.as_ref() };
        tell(made).map_err(WorkshopError::Untold)?;
        Ok(id)
    }

    /// Tells that a sandbox failed, and remembers it where none can be made any more.
    fn fails(&self, tell: Told<'_>, error: &RuntimeError) {
        let fix = match error {
            RuntimeError::Unavailable { fix, .. } => Some(fix.clone()),
            RuntimeError::Engine(error) => Some(error.fix()),
            RuntimeError::Config(_)
            | RuntimeError::Setup(_)
            | RuntimeError::Program { .. }
            | RuntimeError::State(_)
            // Another one can be made when there is room again.
            | RuntimeError::GaveWay(_)
            | RuntimeError::Io { .. } => None,
        };
        if let Some(fix) = fix {
            let _first = self.lost.set(Lost { why: crate::kernel::causes(error), fix });
        }
        tell_failure(tell, error);
    }

    /// Why no sandbox can be made any more, if that was found out.
    pub(crate) fn lost(&self) -> Option<&Lost> {
        self.lost.get()
    }

    /// Has somebody told what becomes of sandboxes.
    pub(crate) fn report_to(&self, reporter: Reporter) {
        let _once = self.reporter.set(reporter);
    }

    /// Has somebody remember what commands ask of the network. Without, none gets there.
    pub(crate) fn record_network(&self, witness: &Arc<Witness>) {
        let _once = self.network.set(Arc::clone(witness));
    }

    fn tell(&self, life: Life<'_>) -> Result<(), String> {
        self.reporter.get().map_or(Ok(()), |reporter| reporter(life))
    }

    /// Ends every job at once, and runs none any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let running: Vec<_> = self.running().values().cloned().collect();
        for sandbox in running {
            sandbox.kill();
        }
        self.let_go();
    }

    fn config(&self, order: &Order<'_>, volume: Option<Volume>) -> Result<Config, ConfigError> {
        self.config_of(Template::CodeExecutor, order, volume)
    }

    fn config_of(
        &self,
        template: Template,
        order: &Order<'_>,
        volume: Option<Volume>,
    ) -> Result<Config, ConfigError> {
        let mut config = Config::of(template);
        if let Some(user) = order.user_limits {
            config = config.with_user_limits(user);
        }
        if let Some(limits) = order.limits {
            config = config.narrowed_to(limits);
        }
        if let Some(home) = &self.options.home {
            config = config.with_home(home)?;
        }
        for path in self.options.shown.iter().chain(order.shown) {
            config = config.showing(path)?;
        }
        let layers = self.all_layers(order.layers);
        let changes = volume.map_or(Changes::Refused, Changes::Overlay);
        config.with_workspace(Workspace { at: self.options.project.clone(), layers, changes })
    }

    /// The project with these layers over it, the lowest first.
    fn all_layers(&self, layers: &[PathBuf]) -> Vec<PathBuf> {
        let installed = self.environments.layers();
        let project = std::iter::once(self.options.project.clone());
        project.chain(installed).chain(layers.iter().cloned()).collect()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<dyn Sandbox>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell_failure(tell: Told<'_>, error: &(dyn std::error::Error + 'static)) {
    // The job fails in any case, and whoever wanted it says so.
    let _told = tell(Life::Failed { why: &crate::kernel::causes(error) });
}

impl Life<'_> {
    /// What the ledger remembers of it.
    pub(crate) fn note(self) -> Note {
        let (event, intent, metadata) = match self {
            Self::Made { id, program, of } => {
                let mut metadata =
                    vec![("sandbox", id.to_owned()), ("program", program.to_owned())];
                let mut intent = "a sandbox is made".to_owned();
                if let Some(MadeOf { driver, image, digest }) = of {
                    // Enough of it to tell images apart at a glance; the whole is beside it.
                    let short: String = digest.chars().take(19).collect();
                    intent = format!("a sandbox is made by {driver} of {short}");
                    let more = [("driver", *driver), ("image", image), ("image_digest", digest)];
                    metadata.extend(more.map(|(name, text)| (name, text.to_owned())));
                }
                (EventType::SandboxCreated, intent, metadata)
            }
            Self::Gone { id, end } => (
                EventType::SandboxDestroyed,
                "a sandbox is gone".to_owned(),
                vec![("sandbox", id.to_owned()), ("end", end.to_owned())],
            ),
            Self::Failed { why } => {
                let metadata = vec![("why", why.to_owned())];
                (EventType::SandboxFailed, "a sandbox failed".to_owned(), metadata)
            }
        };
        let content = None;
        Note { event, intent, request_id: None, workflow_state: None, metadata, content }
    }
}
