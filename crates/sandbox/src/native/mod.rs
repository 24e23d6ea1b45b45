//! The native driver: Linux namespaces, with nothing to install.
//!
//! ```text
//! kernel ── spec ──► fluffy sandbox-init          one thread, kept ready, told everything over one socket
//!   │                  │ takes the host's mounts, makes the namespaces
//!   │                  ▼
//!   ├─ waits for ──► first process (pid 1)         builds the file system, reaps, ends with the kernel
//!   │                  │ forks
//!   │                  ▼
//!   └─ reads from ─► the job                       no capabilities, Landlock, seccomp; then the program
//! ```

pub(crate) mod cgroup;
pub(crate) mod control;
mod disk;
pub(crate) mod first;
mod hold;
pub(crate) mod init;
pub(crate) mod instance;
pub mod l1;
mod maker;
mod mounts;
mod notice;
mod owners;
mod payload;
pub(crate) mod plan;
mod processors;
pub(crate) mod sandbox;
pub(crate) mod seccomp;
pub(crate) mod spec;
pub(crate) mod supervise;
mod sys;
pub(crate) mod system;
mod why;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Config;
use crate::job::Job;
use crate::runtime::{Health, MadeOf, Runtime, RuntimeError, Sandbox, Swept};
use crate::volume::{Store, Volume};

use self::cgroup::{Entrances, Group, Groups, Missing, Part};
use self::control::Order;
use self::instance::Instance;
use self::maker::Maker;
use self::plan::{Surroundings, plan};
use self::system::System;

pub(crate) use self::hold::Hold;
pub use self::init::{sandbox_entry, sandbox_init};
pub use self::payload::Guest;

/// What the driver is told when it is opened.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// The program that answers to `PROGRAM sandbox-init` with [`sandbox_init`]: the kernel's own.
    pub program: PathBuf,
    /// A directory of the kernel's own, on a file system that can hold an overlay's changes.
    pub state: PathBuf,
    /// Where programs are looked for inside; what is not shown there is passed over. Empty for the usual.
    pub path: Vec<PathBuf>,
    /// Variables for every job, such as those that say where toolchains are.
    pub env: Vec<(OsString, OsString)>,
}

/// Runs jobs in namespaces of their own.
#[derive(Debug)]
pub struct Native {
    shared: Arc<Shared>,
}

/// What the driver and its sandboxes have in common.
#[derive(Debug)]
struct Shared {
    options: NativeOptions,
    system: System,
    groups: Groups,
    instance: Instance,
    maker: Maker,
    /// Shows root's files as the sandbox's user, where the kernel is root.
    owners: Option<OwnedFd>,
}

impl Native {
    /// Opens the driver: sweeps up what killed kernels left, and looks around. Whether a sandbox can be made,
    /// [`ping`](Runtime::ping) tries.
    pub fn open(options: NativeOptions) -> Result<Self, RuntimeError> {
        let groups = Groups::here().map_err(outside("the control groups cannot be read"))?;
        sweep(&options.state, &groups);
        let instance = Instance::begin(&options.state);
        let instance = instance.map_err(outside("the sandboxes' directory cannot be made"))?;
        let system =
            System::find().map_err(outside("the namespaces of this process cannot be read"))?;
        let maker = Maker::new(&options.program);
        let mut shared = Shared { options, system, groups, instance, maker, owners: None };
        if shared.system.is_root {
            // Without it, root's project is seen as a stranger sees it, and doctor says so.
            shared.owners = sandbox::ask(&shared, &Order::Owners(system::reserved())).ok();
        }
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Runtime for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn ping(&self) -> Result<Health, RuntimeError> {
        let config = Config::of(crate::template::Template::CodeExecutor);
        let outcome = self.run(config, Job::new("true"), Arc::new(()))?;
        if !outcome.is_success() {
            let what = format!("a job that does nothing does not succeed: {}", outcome.end);
            let fix = "see whether `true` can be run on this machine, and what ended it".to_owned();
            return Err(RuntimeError::Unavailable { what, fix });
        }
        let mut notes: Vec<String> = self.shared.groups.missing().iter().map(instead).collect();
        if !self.shared.system.landlock {
            notes.push("Landlock is not there: files are protected by mounts alone".to_owned());
        }
        if self.shared.system.is_root && self.shared.owners.is_none() {
            let note = "mounts cannot translate owners: files that only root may read are not seen";
            notes.push(note.to_owned());
        }
        Ok(Health::Ready { notes })
    }

    fn volume(&self, store: Store) -> Result<Volume, RuntimeError> {
        Ok(Volume::new(match store {
            Store::Memory => None,
            Store::Disk => {
                Some(self.shared.instance.volume().map_err(outside("a volume cannot be made"))?)
            }
        }))
    }

    fn create(&self, config: Config, job: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
        if self.shared.system.is_root_alone {
            return Err(why::root_alone());
        }
        Ok(Box::new(sandbox::create(Arc::clone(&self.shared), config, job)?))
    }

    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
        Ok(None)
    }

    fn sweep(&self) -> Swept {
        sweep(&self.shared.options.state, &self.shared.groups)
    }
}

impl Shared {
    fn plan(&self, config: &Config, job: &Job, group: &Group, ways: &Entrances) -> spec::Spec {
        let around = Surroundings {
            system: &self.system,
            path: &self.options.path,
            env: &self.options.env,
            limits_memory: !group.has(Part::Memory),
            limits_processes: !group.has(Part::Processes),
            unified: ways.unified.is_some(),
            shows_owners: self.owners.is_some(),
        };
        plan(config, job, &around)
    }
}

/// Takes away what instances left whose process is gone.
fn sweep(state: &Path, groups: &Groups) -> Swept {
    instance::sweep(state, &|name| groups.remove_stale(&format!("fluffy-{name}-")))
}

/// What cannot be had, why, and what stands in for it.
fn instead(missing: &Missing) -> String {
    let stands_in = match missing.part {
        Part::Memory => "each process is limited by itself",
        Part::Processes => "the sandbox's user is limited instead",
        Part::Cpu => "a job may use every core",
        Part::Freezer => "a job is paused by a signal, which it can tell",
        Part::Accounting => "processor time is counted for processes that ended",
    };
    format!("{missing} ({stands_in})")
}

/// What a mutex holds. A thread that panicked left it whole: nothing here is changed in two steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error from the outside.
pub(crate) fn outside(what: &'static str) -> impl FnOnce(io::Error) -> RuntimeError {
    move |source| RuntimeError::Io { what, source }
}
