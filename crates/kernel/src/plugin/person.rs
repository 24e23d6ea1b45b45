//! What a person does about plugins, as calls of the kernel: install, remove, enable, disable.
//!
//! **Invariant.** There is one way to change which plugins run: a request that the kernel allowed, and for installing and
//! enabling a person who saw what it asks for. What is done is what the request says.

use std::sync::{Arc, MutexGuard, PoisonError};

use fluffy_base::{Decision, Digest, Excerpt, Json, KernelRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::{Taken, outside};
use super::life::tell;
use super::store::Store;
use super::{Disabled, Installed, Manifest, Package, PluginError, PluginName, Plugins, Stage};
use crate::kernel::causes;
use crate::{CallContext, Clerk, Effect, Kernel, Shape, Tool, ToolError, ToolSpec};

/// How many files of a plugin a person is shown by name.
const SHOWN_FILES: usize = 100;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum PluginChange {
    /// These files are a plugin from now on, in the place of one of its name.
    Install(Box<Package>),
    /// It is one no more.
    Remove(PluginName),
    /// It runs again.
    Enable(PluginName),
    /// It does not run.
    Disable {
        /// Which.
        name: PluginName,
        /// Why.
        why: String,
    },
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginDone {
    /// Which plugin.
    pub name: PluginName,
    /// `installed`, `removed`, `enabled` or `disabled`.
    pub change: String,
    /// Its version.
    pub version: String,
    /// Hash over all its files.
    pub package: Digest,
    /// Who.
    pub by: String,
    /// The number of its entry in the ledger.
    pub entry: u64,
}

/// What is known of a change that is under way.
pub(super) struct Place {
    change: Option<PluginChange>,
    done: Option<Result<PluginDone, PluginError>>,
}

/// A change as a tool. Only who ordered it through [`Plugins::change`] gets anything done by it.
pub struct PluginStep {
    plugins: Arc<Plugins>,
    name: &'static str,
    summary: &'static str,
}

/// Every change.
const STEPS: [(&str, &str); 4] = [
    ("plugin.install", "Install a plugin"),
    ("plugin.remove", "Remove a plugin"),
    ("plugin.enable", "Let a plugin run again"),
    ("plugin.disable", "Keep a plugin from running"),
];

impl PluginChange {
    /// Which plugin.
    pub fn name(&self) -> &PluginName {
        match self {
            Self::Install(package) => &package.manifest().name,
            Self::Remove(name) | Self::Enable(name) | Self::Disable { name, .. } => name,
        }
    }

    fn tool(&self) -> &'static str {
        match self {
            Self::Install(_) => "plugin.install",
            Self::Remove(_) => "plugin.remove",
            Self::Enable(_) => "plugin.enable",
            Self::Disable { .. } => "plugin.disable",
        }
    }

    /// What the request says: with the hash, everything that is done.
    fn params(&self) -> Value {
        match self {
            Self::Install(package) => {
                let Manifest { name, version, .. } = package.manifest();
                json!({ "name": name, "version": version, "package": package.digest() })
            }
            Self::Remove(name) | Self::Enable(name) => json!({ "name": name }),
            Self::Disable { name, why } => json!({ "name": name, "why": why }),
        }
    }
}

impl Plugins {
    /// Every change as a tool of the kernel's.
    pub fn steps(self: &Arc<Self>) -> Vec<PluginStep> {
        let step = |(name, summary)| PluginStep { plugins: Arc::clone(self), name, summary };
        STEPS.into_iter().map(step).collect()
    }

    /// Has the kernel make a change. A plugin that cannot be registered is not even asked about.
    pub fn change(&self, kernel: &Kernel, change: PluginChange) -> Result<PluginDone, PluginError> {
        let name = change.name().clone();
        if let PluginChange::Install(package) = &change {
            self.check(package).inspect_err(|error| {
                let told = vec![("package", package.digest().to_string()), ("why", causes(error))];
                // That it was rejected is told to whoever wanted it in any case.
                let _told = tell(kernel, &name, Stage::Rejected, told);
            })?;
        } else {
            self.roll()?.find(&name)?;
        }
        let bytes = self.options.ids.fresh().ok_or(PluginError::NoRandomness)?;
        let id = format!("plugin-{:032x}", u128::from_be_bytes(bytes));
        let (tool, intent) = (change.tool(), format!("{} {name}", change.tool()));
        let params = Json::new(change.params()).map_err(PluginError::Json)?;
        let request = KernelRequest::call(&id, "user", &intent, tool, params);
        self.places().insert(id.clone(), Place { change: Some(change), done: None });
        let receipt = kernel.submit_from(&CallContext::default(), request);
        let place = self.places().remove(&id);
        match (receipt.decision, place.and_then(|place| place.done)) {
            (Decision::Allow, Some(done)) => done,
            (Decision::Allow, None) => Err(PluginError::NotDone(receipt.error.unwrap_or_default())),
            (Decision::Deny | Decision::Halt, _) => Err(PluginError::Denied {
                reason: receipt.error.unwrap_or_default(),
                rule: receipt.rule,
            }),
        }
    }

    /// Refuses a plugin that could not be registered beside those that are installed.
    fn check(&self, package: &Package) -> Result<(), PluginError> {
        let name = &package.manifest().name;
        let mut taken = Taken::new();
        for found in self.survey()? {
            if found.installed.name == *name {
                continue;
            }
            for tool in found.manifest.iter().flat_map(|manifest| &manifest.tools) {
                taken.insert(outside(&tool.name), found.installed.name.clone());
            }
        }
        let reasons = self.options.grounds().objections(package.manifest(), &taken);
        if reasons.is_empty() {
            return Ok(());
        }
        Err(PluginError::Rejected { name: name.clone(), reasons })
    }

    fn perform(&self, change: PluginChange, clerk: &dyn Clerk) -> Result<PluginDone, PluginError> {
        let (roll, by) = (self.roll()?, self.options.person.clone());
        let store = Store::of(&self.options.dir);
        let (name, what) = (change.name().clone(), done_by(&change));
        let mut told = vec![("by", by.clone())];
        let before = roll.find(&name).ok().cloned();
        let unknown = || PluginError::Unknown(name.clone());
        let (roll, after) = match change {
            PluginChange::Install(package) => {
                let installed = installed(&package, by.clone());
                told.push(("package", installed.package.to_string()));
                store.put(&package)?;
                (roll.with(installed.clone()), installed)
            }
            PluginChange::Remove(_) => (roll.without(&name), before.clone().ok_or_else(unknown)?),
            PluginChange::Enable(_) => {
                let plugin = before.clone().ok_or_else(unknown)?;
                if plugin.disabled.is_none() {
                    return Err(PluginError::Already(name, "enabled"));
                }
                (roll.set(&name, None), plugin)
            }
            PluginChange::Disable { why, .. } => {
                let plugin = before.clone().ok_or_else(unknown)?;
                told.push(("why", why.clone()));
                (roll.set(&name, Some(Disabled { why, by: by.clone() })), plugin)
            }
        };
        let entry = roll.record(clerk, (&name, what), told)?.seq;
        let in_use = |package: Digest| roll.plugins().iter().any(|it| it.package == package);
        if let Some(before) = before.filter(|before| !in_use(before.package)) {
            store.remove(before.package);
        }
        let Installed { version, package, .. } = after;
        Ok(PluginDone { name, change: what.to_owned(), version, package, by, entry })
    }

    fn places(&self) -> MutexGuard<'_, std::collections::BTreeMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn done_by(change: &PluginChange) -> &'static str {
    match change {
        PluginChange::Install(_) => "installed",
        PluginChange::Remove(_) => "removed",
        PluginChange::Enable(_) => "enabled",
        PluginChange::Disable { .. } => "disabled",
    }
}

fn installed(package: &Package, by: String) -> Installed {
    let Manifest { name, version, .. } = package.manifest();
    Installed {
        name: name.clone(),
        version: version.clone(),
        package: package.digest(),
        files: package.packed(),
        by,
        disabled: None,
    }
}

impl Tool for PluginStep {
    fn spec(&self) -> ToolSpec {
        let text = || json!({ "type": "string" });
        let (properties, required) = match self.name {
            "plugin.install" => (
                json!({ "name": text(), "version": text(), "package": text() }),
                json!(["name", "version", "package"]),
            ),
            "plugin.disable" => (json!({ "name": text(), "why": text() }), json!(["name", "why"])),
            _named => (json!({ "name": text() }), json!(["name"])),
        };
        ToolSpec {
            name: self.name.into(),
            summary: self.summary.into(),
            schema: json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            }),
            effect: Effect::Some,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let ordered =
            self.plugins.places().get_mut(clerk.request_id()).and_then(|it| it.change.take());
        let done = match ordered {
            Some(change) if change.tool() == self.name && change.params() == *params.value() => {
                self.plugins.perform(change, clerk)
            }
            Some(_) | None => Err(PluginError::Another),
        };
        let told = match &done {
            Ok(done) => {
                Ok(json!({ "name": done.name, "change": done.change, "entry": done.entry }))
            }
            Err(error) => Err(ToolError(causes(error))),
        };
        if let Some(place) = self.plugins.places().get_mut(clerk.request_id()) {
            place.done = Some(done);
        }
        told
    }

    fn notes(&self, params: &Json) -> Vec<String> {
        let places = self.plugins.places();
        let mut changes = places.values().filter_map(|place| place.change.as_ref());
        let ordered = changes.find(|it| it.tool() == self.name && it.params() == *params.value());
        match ordered {
            Some(PluginChange::Install(package)) => {
                let roll = self.plugins.roll().unwrap_or_default();
                let before = roll.find(&package.manifest().name).ok().cloned();
                review(package, before.as_ref())
            }
            Some(PluginChange::Enable(name)) => {
                let roll = self.plugins.roll().unwrap_or_default();
                let disabled = roll.find(name).ok().and_then(|plugin| plugin.disabled.clone());
                disabled.iter().map(|it| format!("disabled by {}: {}", it.by, it.why)).collect()
            }
            Some(PluginChange::Remove(_) | PluginChange::Disable { .. }) | None => Vec::new(),
        }
    }
}

/// All that a person decides about: who it is, what it asks for, its tools and its files.
fn review(package: &Package, before: Option<&Installed>) -> Vec<String> {
    let manifest = package.manifest();
    let list = |what: &str, items: Vec<String>| match items.len() {
        0 => format!("{what}: nothing"),
        _ => format!("{what}: {}", items.join(", ")),
    };
    let mut notes = vec![
        format!("plugin: {} {}: {}", manifest.name, manifest.version, manifest.description),
        format!("author, by its own word: {}", manifest.author.as_deref().unwrap_or("not said")),
        format!(
            "runs: {} with {}",
            Excerpt::new(manifest.entry.as_str(), 200),
            manifest.runtime.name()
        ),
        list("reads of the project", manifest.reads.iter().map(ToString::to_string).collect()),
        list("reaches on the network", manifest.hosts.clone()),
        list("needs", manifest.required_capabilities.clone()),
        "changes of the project: nothing".to_owned(),
    ];
    let tools = manifest.tools.iter();
    notes.extend(tools.map(|tool| format!("tool {}: {}", tool.name, tool.description)));
    if let Some(before) = before {
        notes.push(format!("replaces: version {} ({})", before.version, before.package));
    }
    let files = package.packed();
    notes.push(format!("{} files, together {}", files.len(), package.digest()));
    let shown = files.iter().take(SHOWN_FILES);
    let shown = shown.map(|file| (Excerpt::new(file.path.as_str(), 200), file.sha256));
    notes.extend(shown.map(|(path, hash)| format!("{path} is {hash}")));
    if files.len() > SHOWN_FILES {
        notes.push(format!("… and {} more", files.len() - SHOWN_FILES));
    }
    notes
}
