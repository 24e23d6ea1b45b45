//! Runs errands of the kernel's own: each one job in a sandbox that sees what it is given and nothing of the project.
//!
//! **Invariant.** An errand reads its layers, what is shown to it and the system's programs, and writes nothing but its
//! own volume, `/tmp` and an empty home. Without hosts it has no network at all; with hosts, the proxy alone.
//!
//! **Invariant.** What it leaves is taken as a stranger's parcel: regular files of bounded number and size; whatever
//! else lies there is refused by name, and what is too much to look at is refused whole.

mod conversation;
mod keeping;
mod sight;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fluffy_base::{ByteSize, ProjectPath, Span};
use fluffy_sandbox::harvest::{
    Change, Harvest, HarvestError, HarvestLimits, Kind, ReadError, harvest,
};
use fluffy_sandbox::proxy::{AllowError, AllowList, Decision, Record, Upstream};
use fluffy_sandbox::{
    Captured, Changes, Config, ConfigError, End, Input, Job, Limit, Limits, Network, Outcome,
    RuntimeError, Sandbox, Store, Template, Volume, Watcher, Workspace,
};

pub use self::conversation::{Conversation, Folders, Talk};
pub(crate) use self::keeping::Kept;
pub use self::sight::hidden_in;
use crate::witness::Traffic;
use crate::workshop::NotTaken;
use crate::{Journal, Ran, SightError, Witness, Workshop, WorkshopError, WorkshopOptions};

/// The most requests to the proxy that are told of one errand.
const MAX_ASKED: usize = 1_000;

/// What is looked at and taken of what an errand leaves.
const TAKEN: HarvestLimits = HarvestLimits {
    entries: 50_000,
    names: ByteSize::from_bytes(4 << 20),
    depth: 64,
    file: ByteSize::from_bytes(16 << 20),
    total: ByteSize::from_bytes(64 << 20),
};

/// The longest time that a person can give an errand.
const MAX_TIME: Span = Span::from_ms(60 * 60 * 1000);

/// Where errands run.
pub struct Lab {
    workshop: Workshop,
    upstream: Option<Arc<Upstream>>,
    witness: Arc<Witness>,
}

/// One job in a sandbox of its own.
#[derive(Debug)]
pub struct Errand {
    /// The program: a path as it is seen inside, or a name that is looked for there.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables beside the few that every sandbox sets.
    pub env: Vec<(String, String)>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// Where its files are seen, and where it starts.
    pub at: PathBuf,
    /// Directories of the host that are laid there, the lowest first; they are never changed.
    pub layers: Vec<PathBuf>,
    /// What becomes of its changes.
    pub keeps: Keeps,
    /// More of the host that it sees, read-only and at the same place.
    pub shown: Vec<PathBuf>,
    /// Hosts that it reaches through the proxy; none, and it has no network.
    pub hosts: Vec<String>,
    /// Whether these hosts may have private addresses: hosts that the user's own settings name.
    pub private_hosts: bool,
    /// No more than this.
    pub limits: Limits,
    /// How long it may take, where a person has said so: instead of what the template gives, and never more than an hour.
    pub time: Option<Span>,
    /// What is neither looked at nor taken of what it leaves, with all that lies below.
    pub unseen: Vec<ProjectPath>,
}

/// What becomes of the changes that an errand makes to its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// It cannot make any.
    Nothing,
    /// They are kept in memory, apart from the layers, and gone with the errand.
    Briefly,
    /// They are kept apart from the layers, and handed back.
    Overlay,
}

/// What became of an errand.
#[derive(Debug)]
pub struct Errands {
    /// How it ended.
    pub end: End,
    /// Limits that it ran into, also where it went on regardless.
    pub reached: Vec<Limit>,
    /// What it printed.
    pub stdout: Captured,
    /// What it printed to standard error.
    pub stderr: Captured,
    /// How long it ran.
    pub wall: Duration,
    /// The sandbox's name in records.
    pub sandbox: String,
    /// What it asked of the proxy, in order; the first so many.
    pub asked: Vec<Asked>,
    /// What it left, if that is kept.
    pub left: Option<Left>,
}

/// One request that an errand made to the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The host as it was asked for.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
    /// Why it was not let through, if it was not.
    pub refused: Option<String>,
}

/// What an errand left below the place of its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Regular files that were written, by path.
    pub files: Vec<LeftFile>,
    /// What was there and is gone: files, and whole directories under their own name.
    pub removed: Vec<ProjectPath>,
    /// What is not taken, and why. If it was too much to look at, this is all there is, under the name `.`.
    pub refused: Vec<NotTaken>,
}

/// A file that an errand wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftFile {
    /// Where, below the place of its files.
    pub path: ProjectPath,
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// Why an errand was not run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// It has nothing to look at.
    #[error("an errand needs a directory that is laid at `{}`", .0.display())]
    NoLayer(PathBuf),
    /// A host of its list is none, or none that a sandbox may reach.
    #[error("the hosts of the errand cannot be allowed")]
    Hosts(#[from] AllowError),
    /// There is no way to speak to it.
    #[error("it cannot be given pipes")]
    Pipes(#[source] std::io::Error),
    /// What it must not see cannot be hidden.
    #[error(transparent)]
    Sight(SightError),
    /// It did not run, or it is not known what became of it.
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
}

impl Errand {
    /// A program with these files to look at, that gets nothing else and keeps nothing.
    pub fn new(program: impl Into<PathBuf>, at: impl Into<PathBuf>, layers: Vec<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            at: at.into(),
            layers,
            keeps: Keeps::Nothing,
            shown: Vec::new(),
            hosts: Vec::new(),
            private_hosts: false,
            limits: Template::CodeExecutor.limits(),
            time: None,
            unseen: Vec::new(),
        }
    }

    /// The same with these arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    fn job(&mut self) -> Job {
        let mut job = Job::new(self.program.as_os_str()).args(std::mem::take(&mut self.args));
        let env = std::mem::take(&mut self.env).into_iter();
        job.env = env.map(|(name, value)| (name.into(), value.into())).collect();
        if !self.stdin.is_empty() {
            job.stdin = Input::Bytes(std::mem::take(&mut self.stdin));
        }
        job.cwd = Some(self.at.clone());
        job
    }
}

impl Errands {
    /// What became of a job, with what of its files is kept and what was heard of it.
    fn of(ran: Ran, left: Option<Left>, heard: &Heard) -> Self {
        Self {
            left,
            end: ran.outcome.end,
            reached: ran.outcome.reached,
            stdout: ran.outcome.stdout,
            stderr: ran.outcome.stderr,
            wall: ran.outcome.usage.wall,
            sandbox: ran.sandbox,
            asked: std::mem::take(&mut heard.asked()),
        }
    }
}

impl Lab {
    /// A lab. The project of the options is not shown to errands.
    pub fn new(options: WorkshopOptions) -> Self {
        Self { workshop: Workshop::new(options), upstream: None, witness: Arc::default() }
    }

    /// The same with somebody who remembers what its errands ask of the network.
    #[must_use]
    pub fn seen_by(mut self, witness: Arc<Witness>) -> Self {
        self.witness = witness;
        self
    }

    /// The same behind the proxy that the person has to use.
    #[must_use]
    pub fn through(mut self, upstream: Option<Arc<Upstream>>) -> Self {
        self.upstream = upstream;
        self
    }

    /// Runs an errand to its end. The journal is told of its sandbox before it starts; what cannot be told does not run.
    pub fn run(&self, errand: Errand, journal: &dyn Journal) -> Result<Errands, LabError> {
        self.run_keeping(errand, journal).map(|(errands, _volume)| errands)
    }

    /// The same, with the volume in which it left its files.
    pub(crate) fn run_keeping(
        &self,
        mut errand: Errand,
        journal: &dyn Journal,
    ) -> Result<(Errands, Option<Volume>), LabError> {
        let keeps = errand.keeps;
        let store = match keeps {
            Keeps::Nothing => None,
            Keeps::Briefly => Some(Store::Memory),
            Keeps::Overlay => Some(Store::Disk),
        };
        let volume = store.map(|store| self.workshop.options().runtime.volume(store));
        let volume = volume.transpose().map_err(WorkshopError::from)?;
        let job = errand.job();
        let unseen = std::mem::take(&mut errand.unseen);
        let config = self.config(errand, volume.clone())?;
        let heard = self.hearing();
        let drive = |sandbox: &Arc<dyn Sandbox>| sandbox.run(heard.of(sandbox));
        let ran = self.carry_out(config, volume, job, journal, drive)?;
        let kept = ran.volume.as_ref().filter(|_| keeps == Keeps::Overlay);
        let left = kept.map(|volume| left(volume, &unseen));
        let volume = ran.volume.clone();
        Ok((Errands::of(ran, left, &heard), volume))
    }

    /// Has a job driven to its end in a sandbox of which the journal is told.
    fn carry_out(
        &self,
        config: Config,
        volume: Option<Volume>,
        job: Job,
        journal: &dyn Journal,
        drive: impl FnOnce(&Arc<dyn Sandbox>) -> Result<Outcome, RuntimeError>,
    ) -> Result<Ran, WorkshopError> {
        let tell = |life: crate::workshop::Life<'_>| {
            journal.record(life.note()).map(drop).map_err(|error| error.0)
        };
        self.workshop.carry_out_by(config, volume, job, &tell, drive)
    }

    /// Somebody who hears what one sandbox asks of the network.
    fn hearing(&self) -> Arc<Heard> {
        let traffic = Traffic::new(Arc::clone(&self.witness));
        Arc::new(Heard { asked: Mutex::default(), traffic })
    }

    /// Ends every errand at once, and runs none any more.
    pub fn close(&self) {
        self.workshop.close();
    }

    fn config(&self, errand: Errand, volume: Option<Volume>) -> Result<Config, LabError> {
        if errand.layers.is_empty() {
            return Err(LabError::NoLayer(errand.at));
        }
        let refused = |error: ConfigError| LabError::from(WorkshopError::from(error));
        let (template, network) = self.network(&errand.hosts, errand.private_hosts)?;
        let mut config = Config::of(template).narrowed_to(errand.limits);
        if let Some(time) = errand.time {
            let limits = Limits { duration: Some(time.min(MAX_TIME)), ..errand.limits };
            config = config.staying().narrowed_to(limits);
        }
        config = config.with_network(network).map_err(refused)?;
        let options = self.workshop.options();
        if let Some(home) = &options.home {
            config = config.with_home(home).map_err(refused)?;
        }
        for path in options.shown.iter().chain(&errand.shown) {
            config = config.showing(path).map_err(refused)?;
        }
        let changes = volume.map_or(Changes::Refused, Changes::Overlay);
        let workspace = Workspace { at: errand.at, layers: errand.layers, changes };
        config.with_workspace(workspace).map_err(refused)
    }

    fn network(&self, hosts: &[String], private: bool) -> Result<(Template, Network), AllowError> {
        if hosts.is_empty() {
            return Ok((Template::CodeExecutor, Network::None));
        }
        let allowed = AllowList::parse(hosts)?;
        let allowed = if private { allowed.trusting_private() } else { allowed };
        let allowed = Arc::new(allowed);
        let network = match &self.upstream {
            Some(upstream) => Network::Relayed(allowed, Arc::clone(upstream)),
            None => Network::Restricted(allowed),
        };
        Ok((Template::IntegrationTest, network))
    }
}

/// Hears what the proxy is asked, and has it remembered.
struct Heard {
    asked: Mutex<Vec<Asked>>,
    traffic: Traffic,
}

impl Heard {
    /// The same as a watcher of this sandbox.
    fn of(self: &Arc<Self>, sandbox: &Arc<dyn Sandbox>) -> Arc<dyn Watcher> {
        self.traffic.is_of(sandbox);
        Arc::<Self>::clone(self)
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Heard {
    fn proxied(&self, record: &Record) {
        self.traffic.proxied(record);
        let refused = match record.decision {
            Decision::Passed => None,
            Decision::Refused(why) => Some(why.to_string()),
            Decision::Failed(why) => Some(why.to_string()),
            // Its passing was heard already.
            Decision::Closed(_) => return,
        };
        let mut asked = self.asked();
        if asked.len() < MAX_ASKED {
            asked.push(Asked { host: record.host.clone(), port: record.port, refused });
        }
    }
}

/// What lies in the volume of an errand that has ended.
fn left(volume: &Volume, unseen: &[ProjectPath]) -> Left {
    match look(volume, unseen) {
        Ok(left) => left,
        Err(why) => {
            let refused = NotTaken { name: ".".to_owned(), why: crate::kernel::causes(&why) };
            Left { refused: vec![refused], ..Left::default() }
        }
    }
}

/// Why nothing of what an errand left is taken.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("the errand left nothing that could be looked at")]
    NoContent,
    #[error(transparent)]
    Harvest(#[from] HarvestError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

fn look(volume: &Volume, unseen: &[ProjectPath]) -> Result<Left, LookError> {
    let content = volume.content().ok_or(LookError::NoContent)?;
    let found = harvest(content, Kind::Overlay, &TAKEN, &|path| unseen.contains(path))?;
    let refused = found.refused().iter();
    let refused = refused.map(|it| NotTaken { name: it.name.clone(), why: it.why.to_string() });
    let mut left = Left { refused: refused.collect(), ..Left::default() };
    for change in found.changes() {
        take(&found, change, &mut left)?;
    }
    Ok(left)
}

fn take(found: &Harvest, change: &Change, left: &mut Left) -> Result<(), ReadError> {
    match change {
        Change::Delete(path) | Change::Replace(path) => left.removed.push(path.clone()),
        Change::Write(written) => left.files.push(LeftFile {
            path: written.path().clone(),
            bytes: found.read(written)?,
            executable: written.executable(),
        }),
    }
    Ok(())
}
