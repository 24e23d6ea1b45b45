//! The plugins of a project: found, checked, registered as tools, and unloaded in the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluffy_base::{IdSource, ProjectPath};
use fluffy_ledger::{Layout, VerifyingKey};
use fluffy_policy::{Part, PolicyFile};

use super::call::{Plugin, RUN};
use super::check::{Grounds, Taken, outside};
use super::files::sweep;
use super::life::tell;
use super::person::Place;
use super::store::Store;
use super::tool::PluginTool;
use super::{Installed, Manifest, PluginError, PluginRuntime, Roll, Stage};
use crate::kernel::causes;
use crate::{Journal, Lab, Registry, ToolError};

/// What runs plugins that are no programs themselves, as sandboxes see it.
#[derive(Debug, Clone, Default)]
pub struct Interpreters {
    /// Python 3.
    pub python: Option<PathBuf>,
    /// Node.js.
    pub node: Option<PathBuf>,
    /// Deno.
    pub deno: Option<PathBuf>,
}

impl Interpreters {
    /// The program for a runtime, if there is one.
    pub fn program(&self, runtime: PluginRuntime) -> Option<&PathBuf> {
        match runtime {
            PluginRuntime::Native => None,
            PluginRuntime::Node => self.node.as_ref(),
            PluginRuntime::Deno => self.deno.as_ref(),
            PluginRuntime::Python => self.python.as_ref(),
        }
    }
}

/// What plugins need.
pub struct PluginOptions {
    /// The ledger that says which are installed.
    pub layout: Layout,
    /// The key that it is signed with.
    pub key: VerifyingKey,
    /// Their own directory in the project's state.
    pub dir: PathBuf,
    /// Where they run; its project is the one whose folders they see.
    pub lab: Arc<Lab>,
    /// What runs them.
    pub interpreters: Interpreters,
    /// The policy in force.
    pub policy: PolicyFile,
    /// Parts of the system that lie inside the project.
    pub kept: Vec<(ProjectPath, Part)>,
    /// Whom this process works for, by the system's word.
    pub person: String,
    /// Where ids come from.
    pub ids: Arc<dyn IdSource>,
}

/// The plugins of a project.
pub struct Plugins {
    pub(super) options: Arc<PluginOptions>,
    plugins: Mutex<Vec<Arc<Plugin>>>,
    surveyed: Mutex<Vec<Surveyed>>,
    /// Changes that are under way, by the request that they are.
    pub(super) places: Mutex<BTreeMap<String, Place>>,
}

/// An installed plugin, and what was found out about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Surveyed {
    /// What the ledger has of it.
    pub installed: Installed,
    /// What it says of itself, if its files are what was installed.
    pub manifest: Option<Manifest>,
    /// REGISTERED, REJECTED or DISABLED.
    pub stage: Stage,
    /// Why it is rejected or disabled.
    pub reasons: Vec<String>,
}

impl Surveyed {
    /// Looks at every installed plugin, by name, without running any.
    pub fn all(
        roll: &Roll,
        dir: &std::path::Path,
        (policy, kept): (&PolicyFile, &[(ProjectPath, Part)]),
        interpreters: &Interpreters,
    ) -> Vec<Self> {
        let (store, mut taken) = (Store::of(dir), Taken::new());
        let grounds = Grounds { policy, kept, interpreters };
        let plugins = roll.plugins().iter();
        plugins.map(|installed| Self::of(installed, &store, &grounds, &mut taken)).collect()
    }

    fn of(installed: &Installed, store: &Store, grounds: &Grounds<'_>, taken: &mut Taken) -> Self {
        let installed = installed.clone();
        let manifest = match store.get(&installed) {
            Ok(package) => package.manifest().clone(),
            Err(error) => {
                let reasons = vec![causes(&error)];
                return Self { installed, manifest: None, stage: Stage::Rejected, reasons };
            }
        };
        // What is disabled keeps its names: it may be enabled again.
        let reasons = grounds.objections(&manifest, taken);
        for tool in &manifest.tools {
            taken.entry(outside(&tool.name)).or_insert_with(|| manifest.name.clone());
        }
        let disabled = installed.disabled.as_ref();
        let disabled = disabled.map(|it| format!("{} (by {})", it.why, it.by));
        let (stage, reasons) = match disabled {
            _ if !reasons.is_empty() => (Stage::Rejected, reasons),
            Some(why) => (Stage::Disabled, vec![why]),
            None => (Stage::Registered, reasons),
        };
        Self { installed, manifest: Some(manifest), stage, reasons }
    }
}

impl Plugins {
    /// The plugins of a project.
    pub fn new(options: PluginOptions) -> Arc<Self> {
        Arc::new(Self {
            options: Arc::new(options),
            plugins: Mutex::default(),
            surveyed: Mutex::default(),
            places: Mutex::default(),
        })
    }

    /// Where they run: whoever ends what is under way closes it.
    pub fn lab(&self) -> Arc<Lab> {
        Arc::clone(&self.options.lab)
    }

    /// Which plugins are installed.
    pub fn roll(&self) -> Result<Roll, PluginError> {
        self.options.roll()
    }

    /// Every installed plugin, and what is found out about it.
    pub fn survey(&self) -> Result<Vec<Surveyed>, PluginError> {
        let PluginOptions { dir, policy, kept, interpreters, .. } = &*self.options;
        Ok(Surveyed::all(&self.roll()?, dir, (policy, kept), interpreters))
    }

    /// Registers the tools of every plugin that can be. What cannot is rejected, and hinders nobody else.
    pub fn register(&self, registry: &mut Registry) -> Result<Vec<Surveyed>, PluginError> {
        let mut surveyed = self.survey()?;
        for found in surveyed.iter_mut().filter(|found| found.stage == Stage::Registered) {
            let Some(manifest) = found.manifest.clone() else { continue };
            let plugin = Plugin::new(&self.options, found.installed.clone(), manifest);
            let plugin = Arc::new(plugin);
            match PluginTool::all(&plugin).and_then(|tools| {
                tools.into_iter().try_for_each(|tool| Ok(registry.register(Box::new(tool))?))
            }) {
                Ok(()) => self.plugins().push(plugin),
                Err(error) => {
                    found.stage = Stage::Rejected;
                    found.reasons = vec![causes(&error)];
                }
            }
        }
        *self.surveyed.lock().unwrap_or_else(PoisonError::into_inner) = surveyed.clone();
        Ok(surveyed)
    }

    /// Whether a tool is one of those that were registered; what there is instead otherwise.
    pub fn has(&self, tool: &str) -> Result<(), PluginError> {
        let surveyed = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = |found: &Surveyed| -> Vec<String> {
            let manifest = found.manifest.iter();
            manifest.flat_map(|it| it.tools.iter().map(|tool| tool.name.clone())).collect()
        };
        let (ready, rest): (Vec<_>, Vec<_>) =
            surveyed.iter().partition(|found| found.stage == Stage::Registered);
        let ready: Vec<String> = ready.into_iter().flat_map(tools).collect();
        if ready.iter().any(|name| name == tool) {
            return Ok(());
        }
        let hindered = rest.into_iter().find(|found| tools(found).iter().any(|name| name == tool));
        if let Some(Surveyed { installed, stage, reasons, .. }) = hindered {
            let (name, reasons) = (installed.name.clone(), reasons.clone());
            return Err(PluginError::Hindered { name, stage: *stage, reasons });
        }
        let there = match ready.is_empty() {
            true => "none is installed".to_owned(),
            false => format!("there are: {}", ready.join(", ")),
        };
        Err(PluginError::NoTool { tool: fluffy_base::Excerpt::new(tool, 80).to_string(), there })
    }

    /// Tells the ledger what became of each plugin when it was registered. Whoever can do that has the ledger to itself:
    /// what lies where plugins run is of processes that died.
    pub fn announce(&self, journal: &dyn Journal) -> Result<(), ToolError> {
        sweep(&self.options.dir.join(RUN));
        let surveyed =
            std::mem::take(&mut *self.surveyed.lock().unwrap_or_else(PoisonError::into_inner));
        surveyed.iter().try_for_each(|found| {
            let why = found.reasons.join("; ");
            let why = (!why.is_empty()).then_some(("why", why));
            let told = [("package", found.installed.package.to_string())];
            tell(journal, &found.installed.name, found.stage, told.into_iter().chain(why).collect())
        })
    }

    /// Ends every plugin that runs, in order.
    pub fn unload(&self, journal: &dyn Journal) {
        for plugin in self.plugins().iter() {
            plugin.unload(journal);
        }
    }

    fn plugins(&self) -> MutexGuard<'_, Vec<Arc<Plugin>>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginOptions {
    pub(super) fn roll(&self) -> Result<Roll, PluginError> {
        Roll::read(&self.layout, &self.key, &self.dir)
    }

    pub(super) fn grounds(&self) -> Grounds<'_> {
        let Self { policy, kept, interpreters, .. } = self;
        Grounds { policy, kept, interpreters }
    }
}
