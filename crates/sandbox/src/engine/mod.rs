//! The drivers for Docker and Podman: one, over the engine's HTTP API.
//!
//! ```text
//! kernel ── create, start ──► engine ──► container          read-only root, no capability, seccomp, no network, limits
//!   │                                      │ its first process is ours: `PROGRAM sandbox-entry`
//!   ├── what to run, the job's streams ───►│ over a Unix socket that is shown to it
//!   │                                      ▼
//!   └── reads from ──────────────────────► the job           Landlock, the exact seccomp filter; then the program
//! ```
//!
//! The engine builds the walls, and the job is confined once more inside by the same code as on the native driver. The
//! changes of a workspace are an overlay that the engine mounts; they lie in a directory of the kernel's, where they
//! are harvested as any other.

mod api;
mod error;
mod gate;
mod hold;
mod http;
mod image;
mod kernel;
mod kind;
mod plan;
mod pull;
mod sandbox;
mod unsay;
mod words;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::config::Config;
use crate::job::Job;
use crate::native::cgroup::Stale;
use crate::native::instance::{self, Instance};
use crate::native::plan::Surroundings;
use crate::native::seccomp::json::around_a_job;
use crate::native::spec::{Inner, Owner};
use crate::native::system::System;
use crate::native::{outside, plan as native_plan};
use crate::runtime::{Health, MadeOf, Runtime, RuntimeError, Sandbox, Swept};
use crate::template::Template;
use crate::volume::{Store, Volume};

use self::api::Api;
use self::image::Image;
use self::words::User;

pub use self::api::About;
pub use self::error::EngineError;
pub use self::gate::{Gate, GateOptions};
pub use self::image::{BadImageName, Fetch, ImageChoice, ImageName};
pub use self::kernel::{ContainOptions, Contained, contain};
pub use self::kind::{EngineKind, UnknownEngine};

/// What the driver is told when it is opened.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Which engine.
    pub engine: EngineKind,
    /// Where it may listen; the first that answers is used.
    pub sockets: Vec<PathBuf>,
    /// Which image containers are made of.
    pub image: ImageChoice,
    /// The program that answers to `PROGRAM sandbox-entry` with [`crate::sandbox_entry`]: the kernel's own.
    pub program: PathBuf,
    /// A directory of the kernel's own, on a file system that can hold an overlay's changes, and that the engine sees.
    pub state: PathBuf,
    /// Where programs are looked for inside; what is not shown there is passed over. Empty for the usual.
    pub path: Vec<PathBuf>,
    /// Variables for every job, such as those that say where toolchains are.
    pub env: Vec<(OsString, OsString)>,
}

/// Runs jobs in containers.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What the driver and its sandboxes have in common.
#[derive(Debug)]
struct Shared {
    options: EngineOptions,
    api: Arc<Api>,
    about: About,
    system: System,
    instance: Instance,
    image: Image,
    /// How the first process is started.
    entry: Vec<String>,
    seccomp: Value,
    seccomp_file: PathBuf,
    selinux: bool,
}

impl Engine {
    /// Opens the driver: greets the engine, sweeps up what killed kernels left, and sees to the image, which may take
    /// longer than this call. Whether a sandbox can be made, [`ping`](Runtime::ping) tries.
    pub fn open(options: EngineOptions) -> Result<Self, RuntimeError> {
        let (api, about) = greet(options.engine, &options.sockets)?;
        let api = Arc::new(api);
        let mut system =
            System::find().map_err(outside("the namespaces of this process cannot be read"))?;
        if !about.rootless {
            // Its containers are in the user namespace of everybody.
            system.outside.retain(|(name, _)| name != "user");
        }
        take_away(&api, &options.state);
        let instance = Instance::begin(&options.state);
        let instance = instance.map_err(outside("the sandboxes' directory cannot be made"))?;
        let libraries = libraries(&instance.directory().join("lib"));
        let entry = libraries.map_err(outside("the libraries of this program cannot be copied"))?;
        let seccomp = around_a_job();
        let seccomp_file = instance.directory().join("seccomp.json");
        sandbox::note(&seccomp_file, seccomp.to_string().as_bytes())?;
        let image = Image::prepare(&api, options.image.clone(), &system)?;
        let selinux = Path::new("/sys/fs/selinux/enforce").exists();
        Ok(Self {
            shared: Arc::new(Shared {
                options,
                api,
                about,
                system,
                instance,
                image,
                entry,
                seccomp,
                seccomp_file,
                selinux,
            }),
        })
    }

    /// What the engine is.
    pub fn about(&self) -> &About {
        &self.shared.about
    }

    /// The digest of the image that containers are made of, once it is there.
    pub fn image(&self) -> Option<String> {
        self.shared.image.known()
    }

    /// The same, waited for.
    pub fn image_prepared(&self) -> Result<String, RuntimeError> {
        self.shared.image.digest()
    }
}

impl Runtime for Engine {
    fn name(&self) -> &'static str {
        self.shared.api.kind().name()
    }

    fn ping(&self) -> Result<Health, RuntimeError> {
        if let Some(pending) = self.shared.image.pending()? {
            return Ok(pending);
        }
        let config = Config::of(Template::CodeExecutor);
        let outcome = self.run(config, Job::new("true"), Arc::new(()))?;
        if !outcome.is_success() {
            let what = format!("a job that does nothing does not succeed: {}", outcome.end);
            let fix = "see whether the image has a program `true`, and what ended it".to_owned();
            return Err(RuntimeError::Unavailable { what, fix });
        }
        let mut notes = Vec::new();
        if !self.shared.system.landlock {
            notes.push("Landlock is not there: files are protected by mounts alone".to_owned());
        }
        if outcome.usage.memory.is_none() {
            let note = "no limit of processes is told: the engine's control groups cannot be read here \
                        (a job that reaches it is refused more all the same)";
            notes.push(note.to_owned());
        }
        if !self.shared.freezes() {
            let note = "no freezer: a rootless engine has none with control groups of version 1 (a job is paused by \
                        a signal, which it can tell)";
            notes.push(note.to_owned());
        }
        Ok(Health::Ready { notes })
    }

    fn wait_for_progress(&self, patience: Duration) {
        self.shared.image.wait_for_progress(patience);
    }

    fn volume(&self, store: Store) -> Result<Volume, RuntimeError> {
        // The engine mounts it, so that it lies on disk either way.
        let directory =
            self.shared.instance.volume().map_err(outside("a volume cannot be made"))?;
        Ok(Volume::in_directory(store, directory))
    }

    fn create(&self, config: Config, job: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
        Ok(Box::new(sandbox::create(Arc::clone(&self.shared), config, job)))
    }

    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
        let image = &self.shared.image;
        let (image, digest) = (image.name().to_owned(), image.digest()?);
        Ok(Some(MadeOf { driver: self.name(), image, digest }))
    }

    fn sweep(&self) -> Swept {
        take_away(&self.shared.api, &self.shared.options.state)
    }
}

impl Shared {
    /// The user of the host that stands behind a sandbox.
    fn owner(&self, config: &Config) -> Result<Owner, RuntimeError> {
        let project = config.workspace().and_then(|space| space.layers.first());
        let owner = self.system.owner(project.map(PathBuf::as_path));
        if sandbox::owned_by_root(config, owner) {
            let what = "the project belongs to root, and a container never runs as root".to_owned();
            let fix = "give the project to the user who works on it (`chown -R`), or use the native driver \
                       (`fluffy config set sandbox.runtime native`), which can translate owners"
                .to_owned();
            return Err(RuntimeError::Unavailable { what, fix });
        }
        Ok(owner)
    }

    /// Who that is for the engine.
    fn user(&self, owner: Owner) -> User {
        match (self.about.rootless, self.api.kind()) {
            (false, _) => User::Same(owner.uid, owner.gid),
            (true, EngineKind::Podman) => User::Kept(owner.uid, owner.gid),
            (true, EngineKind::Docker) => User::Owner,
        }
    }

    /// Who that is inside.
    fn inside(&self, owner: Owner) -> Owner {
        match self.user(owner) {
            User::Same(..) | User::Kept(..) => owner,
            User::Owner => Owner { uid: 0, gid: 0, ..owner },
        }
    }

    /// The system whose programs are shown, if the image has none.
    fn shown_system(&self) -> Option<&System> {
        match self.image.choice() {
            ImageChoice::Base => Some(&self.system),
            ImageChoice::Named(..) => None,
        }
    }

    fn inner(&self, config: &Config, job: &Job) -> Inner {
        let around = Surroundings {
            system: &self.system,
            path: if self.shown_system().is_some() { &self.options.path } else { &[] },
            env: &self.options.env,
            limits_memory: false,
            limits_processes: false,
            unified: false,
            shows_owners: false,
        };
        native_plan::inner(config, job, &around)
    }

    fn freezes(&self) -> bool {
        !self.about.rootless || self.about.cgroups == "2"
    }
}

/// Greets the first engine that answers; if none does, the error of the first socket that is there, or of the last.
fn greet(engine: EngineKind, sockets: &[PathBuf]) -> Result<(Api, About), RuntimeError> {
    let mut failed = None;
    for socket in sockets {
        match Api::greet(engine, socket) {
            Ok(greeted) => return Ok(greeted),
            Err(error) => {
                if socket.exists() {
                    return Err(error.into());
                }
                failed = Some(error);
            }
        }
    }
    Err(failed.map_or_else(
        || RuntimeError::Unavailable {
            what: format!("nobody said where {engine} listens"),
            fix: "set DOCKER_HOST or XDG_RUNTIME_DIR".to_owned(),
        },
        RuntimeError::Engine,
    ))
}

/// Takes away what instances left whose process is gone.
fn take_away(api: &Api, state: &Path) -> Swept {
    instance::sweep(state, &|instance| {
        let mut stale = Stale::default();
        let mut count = |removed: bool| {
            let counter = if removed { &mut stale.groups } else { &mut stale.left };
            *counter = counter.saturating_add(1);
        };
        match (api.containers_of(instance), api.volumes_of(instance)) {
            (Ok(containers), Ok(volumes)) => {
                containers.iter().for_each(|id| count(api.remove(id).is_ok()));
                volumes.iter().for_each(|name| count(api.remove_volume(name).is_ok()));
            }
            _ => count(false),
        }
        stale
    })
}

/// Copies the libraries that this program runs with, so that it runs in any image; gives the command that does.
fn libraries(to: &Path) -> io::Result<Vec<String>> {
    fs::create_dir(to)?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mut loader = None;
    let mut names: Vec<&str> =
        maps.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| path).collect();
    names.sort_unstable();
    names.dedup();
    for path in names {
        let path = Path::new("/").join(path);
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.contains(".so") {
            continue;
        }
        fs::copy(&path, to.join(name))?;
        if name.starts_with("ld-") || name.starts_with("ld64") {
            loader = Some(format!("/run/fluffy/lib/{name}"));
        }
    }
    let (program, entry) = ("/run/fluffy/program".to_owned(), "sandbox-entry".to_owned());
    Ok(match loader {
        Some(loader) => {
            vec![loader, "--library-path".to_owned(), "/run/fluffy/lib".to_owned(), program, entry]
        }
        None => vec![program, entry],
    })
}
