//! What a sandbox is made of.
//!
//! **Invariant.** A configuration comes from a template, and every function here narrows it or shows it
//! more of what the kernel chose to show: none gives it another profile, or a network where the template
//! has none. More memory, time or processes come from [`Config::with_user_limits`] alone: what it is given is
//! the user's own setting, never a word of a model, a request or a project. Once a sandbox is made of it, it is gone.
//!
//! Fixed for all: a read-only root, no new privileges, no capabilities, a user that is not root.

use std::path::{Path, PathBuf};

use fluffy_base::ProjectPath;

use crate::limits::{Limits, UserLimits};
use crate::network::Network;
use crate::profile::Profile;
use crate::template::{Reach, Template};
use crate::volume::Volume;

/// What a sandbox is made of.
#[derive(Debug)]
pub struct Config {
    template: Template,
    limits: Limits,
    network: Network,
    workspace: Option<Workspace>,
    parts: Option<Parts>,
    home: Option<PathBuf>,
    shown: Vec<Shown>,
}

/// The files a job works on.
#[derive(Debug)]
pub struct Workspace {
    /// Where they are seen inside: the project's own path, so that what tools remember stays true.
    pub at: PathBuf,
    /// Directories of the host, the lowest first; the later hide the earlier. All are read-only.
    pub layers: Vec<PathBuf>,
    /// Where changes go.
    pub changes: Changes,
}

/// Where a job's changes to its workspace go.
#[derive(Debug)]
pub enum Changes {
    /// Nowhere: the workspace is read-only.
    Refused,
    /// The workspace is read-only; what the job leaves in `/output` goes to the volume.
    Output(Volume),
    /// The workspace can be written; what changes is laid over it in the volume.
    Overlay(Volume),
}

/// The folders of a workspace that a job sees, where it does not see all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Folders that it sees and cannot change.
    pub seen: Vec<ProjectPath>,
    /// Folders that it sees, and whose changes go where those of the workspace go.
    pub changed: Vec<ProjectPath>,
}

/// A path of the host that is shown read-only at the same place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown(PathBuf);

/// Why a configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A template without network was to get one.
    #[error("sandbox template `{0}` has no network")]
    NoNetwork(Template),
    /// A template that sees no project was to get one.
    #[error("sandbox template `{0}` sees no project")]
    NoProject(Template),
    /// A path must be absolute, without `.` and `..`, and not lead into the sandbox's own parts.
    #[error("`{}` cannot be shown in a sandbox: {why}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Parts of the sandbox that are its own: nothing of the host is laid over them or shown from them.
/// `/var/run` is `/run` under its old name, where runtimes have their sockets.
const OWN: [&str; 7] = ["/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/output"];

impl Config {
    /// What the template gives.
    pub fn of(template: Template) -> Self {
        Self {
            template,
            limits: template.limits(),
            network: Network::None,
            workspace: None,
            parts: None,
            home: None,
            shown: Vec::new(),
        }
    }

    /// The same with the limits of the user's own settings, which may be wider than the template's.
    #[must_use]
    pub fn with_user_limits(mut self, user: UserLimits) -> Self {
        self.limits = self.limits.with_user(user);
        self
    }

    /// The same, with no more than this.
    #[must_use]
    pub fn narrowed_to(mut self, limits: Limits) -> Self {
        self.limits = self.limits.narrowed_to(limits);
        self
    }

    /// The same for a guest that stays and answers: its life has no limit, each of its answers has one
    /// that the caller keeps.
    #[must_use]
    pub fn staying(mut self) -> Self {
        self.limits.duration = None;
        self
    }

    /// The same with this network.
    pub fn with_network(mut self, network: Network) -> Result<Self, ConfigError> {
        if network.allowed().is_some() && self.template.reach() == Reach::None {
            return Err(ConfigError::NoNetwork(self.template));
        }
        self.network = network;
        Ok(self)
    }

    /// The same with files to work on.
    pub fn with_workspace(mut self, workspace: Workspace) -> Result<Self, ConfigError> {
        if !self.template.shows_project() {
            return Err(ConfigError::NoProject(self.template));
        }
        place(&workspace.at)?;
        for layer in &workspace.layers {
            plain(layer)?;
        }
        self.workspace = Some(workspace);
        Ok(self)
    }

    /// The same with these folders of its workspace alone. Each has to be there, as a directory and not as a link.
    #[must_use]
    pub fn with_parts(mut self, parts: Parts) -> Self {
        self.parts = Some(parts);
        self
    }

    /// The same with a private, empty, writable home directory at this path.
    pub fn with_home(mut self, home: &Path) -> Result<Self, ConfigError> {
        place(home)?;
        self.home = Some(home.to_owned());
        Ok(self)
    }

    /// The same with a path of the host shown read-only.
    pub fn showing(mut self, path: &Path) -> Result<Self, ConfigError> {
        self.shown.push(Shown::new(path)?);
        Ok(self)
    }

    /// The template it came from.
    pub fn template(&self) -> Template {
        self.template
    }

    /// The seccomp profile.
    pub fn profile(&self) -> Profile {
        self.template.profile()
    }

    /// How much it may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it can reach.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What it works on.
    pub fn workspace(&self) -> Option<&Workspace> {
        self.workspace.as_ref()
    }

    /// The folders of it that are seen; all of it where nothing is said.
    pub fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// Where its changes go, if it keeps any.
    pub fn volume(&self) -> Option<&Volume> {
        self.workspace.as_ref().and_then(Workspace::volume)
    }

    /// Its home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// What it sees of the host beside the system's own directories.
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }
}

impl Workspace {
    /// A workspace that nothing can change.
    pub fn read_only(project: &Path) -> Self {
        Self { at: project.to_owned(), layers: vec![project.to_owned()], changes: Changes::Refused }
    }

    /// A workspace whose changes are laid over it in a volume.
    pub fn overlay(project: &Path, volume: Volume) -> Self {
        Self { changes: Changes::Overlay(volume), ..Self::read_only(project) }
    }

    /// A workspace that nothing can change, with `/output` beside it.
    pub fn with_output(project: &Path, volume: Volume) -> Self {
        Self { changes: Changes::Output(volume), ..Self::read_only(project) }
    }

    /// The volume that takes changes.
    pub fn volume(&self) -> Option<&Volume> {
        match &self.changes {
            Changes::Refused => None,
            Changes::Output(volume) | Changes::Overlay(volume) => Some(volume),
        }
    }
}

impl Shown {
    /// A path to show.
    pub fn new(path: &Path) -> Result<Self, ConfigError> {
        place(path)?;
        Ok(Self(path.to_owned()))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Whether something may be mounted at this path.
fn place(path: &Path) -> Result<(), ConfigError> {
    plain(path)?;
    let refuse = |why| Err(ConfigError::Path { path: path.to_owned(), why });
    if path == Path::new("/") {
        return refuse("it is the whole file system");
    }
    if OWN.iter().any(|own| path.starts_with(own)) {
        return refuse("that part of a sandbox is its own");
    }
    Ok(())
}

/// Whether a path means one thing: absolute, without `.` and `..`, without NUL.
fn plain(path: &Path) -> Result<(), ConfigError> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Component;
    let refuse = |why| Err(ConfigError::Path { path: path.to_owned(), why });
    if !path.is_absolute() {
        return refuse("it is not absolute");
    }
    if path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir)) {
        return refuse("it holds `..`");
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return refuse("it holds a NUL");
    }
    Ok(())
}
