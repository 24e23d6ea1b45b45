//! Installs packages for a session, in three sandboxes with three sets of rights.
//!
//! ```text
//! deps.install ─► deps.resolve   network to registries; manifests and lock files alone; no scripts
//!                     │ Resolved: packages, changed files, archives
//!                     ▼
//!                 DependencyRule: policy, and a person who is shown what was resolved
//!                     │ yes
//!                     ▼
//!                 unpack         no network; archives held against the lock file's hashes
//!                 rebuild        no network; scripts of packages that the policy names
//!                     ▼
//!                 Environment in the store, shown to every later sandbox; manifests and lock file staged
//! ```
//!
//! **Invariant.** What is installed is what was judged: the archives of the very resolution that the rule saw.
//!
//! **Invariant.** The user's credentials are in the sandbox that resolves and nowhere else; no text that comes back has them.

mod build_cache;
mod install;
mod resolve;
mod rule;
mod sandbox;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluffy_base::{Clock, Digest, ProjectPath};
use fluffy_dependencies::{InstallRequest, Judgement, Manager, RegistrySettings, ResolvedPackage};
use fluffy_policy::DependencyRules;
use serde::{Deserialize, Serialize};

pub(crate) use self::build_cache::BuildSubject;
pub(crate) use self::rule::{DependencyPolicyRule, INSTALL};
use crate::environments::{Environment, EnvironmentStore, Making};
use crate::{KernelConfig, Lab};

/// What a session needs to install packages.
pub struct DependencyOptions {
    /// Where managers run.
    pub lab: Arc<Lab>,
    /// The user's own settings of registries.
    pub registries: RegistrySettings,
    /// Where environments are kept.
    pub store: EnvironmentStore,
}

/// What a session knows of its packages.
pub(crate) struct Dependencies {
    options: DependencyOptions,
    rules: DependencyRules,
    clock: Arc<dyn Clock>,
    /// What was resolved last, until it is installed.
    resolution: Mutex<Option<Resolution>>,
    /// The versions of managers, as they were found out.
    versions: Mutex<BTreeMap<Manager, String>>,
    /// What is known of builds of dependencies.
    builds: build_cache::BuildCacheState,
}

/// What became of resolving the arguments of a call.
struct Resolution {
    /// The hash of those arguments.
    arguments: Digest,
    /// What was resolved, or why nothing was.
    outcome: Result<Resolved, String>,
}

/// What a request resolved to.
struct Resolved {
    request: InstallRequest,
    root: Option<ProjectPath>,
    /// What was locked before.
    before: Vec<ResolvedPackage>,
    packages: Vec<ResolvedPackage>,
    /// Every file that managers look at, as it will be.
    files: BTreeMap<ProjectPath, Vec<u8>>,
    /// Those that change.
    changed: Vec<ProjectPath>,
    key: String,
    tool: String,
    judgement: Judgement,
    source: Source,
}

/// Where the environment comes from.
enum Source {
    /// It is in the store.
    Stored(Arc<Environment>),
    /// Its archives were fetched.
    Fetched(Making),
    /// There is nothing to install.
    Nothing,
}

/// An environment of a session, as its entries have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstalledEnvironment {
    /// Its key in the store; none where there is nothing to install.
    pub(crate) key: Option<String>,
    /// The manager.
    pub(crate) manager: Manager,
    /// Where its package lies.
    pub(crate) root: Option<ProjectPath>,
    /// The packages that were agreed to: `name@version`.
    pub(crate) packages: Vec<String>,
    /// The files that were changed with it, each with the hash of what a person was shown.
    pub(crate) files: BTreeMap<ProjectPath, Digest>,
}

impl Dependencies {
    /// Of a session whose kernel is made like this.
    pub(crate) fn new(options: DependencyOptions, kernel: &KernelConfig) -> Self {
        options.store.sweep();
        let (rules, clock) = (kernel.policy.dependencies().clone(), Arc::clone(&kernel.clock));
        let (resolution, versions) = (Mutex::default(), Mutex::default());
        let builds = build_cache::BuildCacheState::default();
        Self { options, rules, clock, resolution, versions, builds }
    }

    /// Ends every installation that is under way.
    pub(crate) fn close(&self) {
        self.options.lab.close();
    }

    /// The environment of a key, if it is still there and whole.
    pub(crate) fn stored(&self, key: &str) -> Option<Arc<Environment>> {
        self.options.store.find(key).ok().flatten().map(Arc::new)
    }

    /// What a person who is asked about an installation should see.
    pub(crate) fn notes(&self, arguments: &Digest) -> Vec<String> {
        let resolution = self.resolution();
        let resolution = resolution.as_ref().filter(|it| it.arguments == *arguments);
        match resolution.map(|it| &it.outcome) {
            Some(Ok(resolved)) => resolved.judgement.notes.clone(),
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// The packages that a person would be asked about, as the policy names them.
    pub(crate) fn named(&self, arguments: &Digest) -> Vec<String> {
        let resolution = self.resolution();
        let resolution = resolution.as_ref().filter(|it| it.arguments == *arguments);
        let Some(Ok(resolved)) = resolution.map(|it| &it.outcome) else { return Vec::new() };
        let ecosystem = resolved.request.manager.ecosystem();
        let allowed = |name: &str| self.rules.allow.iter().any(|it| it.matches(ecosystem, name));
        let names = resolved.packages.iter().map(|package| package.name.as_str());
        let mut names: Vec<String> =
            names.filter(|name| !allowed(name)).map(|name| format!("{ecosystem}:{name}")).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn resolution(&self) -> MutexGuard<'_, Option<Resolution>> {
        self.resolution.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
