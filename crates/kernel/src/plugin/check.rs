//! Whether a plugin can be registered: its names, its version, what runs it, and what it needs against the policy.
//!
//! **Invariant.** A name of ours is nobody else's: not as it is written, not in the form that vendors of models take, and
//! not a new one in a group that rules speak of.

use std::collections::BTreeMap;

use fluffy_base::{Excerpt, Json, KernelRequest, KernelState, ProjectPath};
use fluffy_policy::{
    BuiltIn, Caller, Facts, Isolation, Part, PolicyFile, Rule, Subject, THIRD_PARTY, Verdict, fold,
    known_calls,
};
use fluffy_sandbox::proxy::AllowList;

use super::protocol::negotiate;
use super::{Interpreters, Manifest, PLUGIN_API, PluginName, PluginRuntime};
use crate::OFFERED;
use crate::clerk::MODEL;

/// Groups that are ours beside those of the tools that we have.
const OWN_GROUPS: [&str; 6] = ["skill", "forge", "session", "policy", "plugin", "kernel"];

/// The calls whose rights a plugin can ask for.
const CAPABILITIES: [&str; 2] = ["fs.read", "shell.run"];

/// What a plugin is held against.
pub(super) struct Grounds<'a> {
    /// The policy in force.
    pub(super) policy: &'a PolicyFile,
    /// Parts of the system that lie inside the project.
    pub(super) kept: &'a [(ProjectPath, Part)],
    /// What runs plugins here.
    pub(super) interpreters: &'a Interpreters,
}

/// The tools of plugins that are registered, by the form of their names that vendors take, with the plugin's name.
pub(super) type Taken = BTreeMap<String, PluginName>;

/// A tool's name as vendors of models take it.
pub(super) fn outside(tool: &str) -> String {
    tool.replace('.', "_")
}

impl Grounds<'_> {
    /// What is against a plugin, a sentence each; nothing, if it can be registered.
    pub(super) fn objections(&self, manifest: &Manifest, taken: &Taken) -> Vec<String> {
        let mut found = Vec::new();
        if let Err(fault) = negotiate(manifest.min_api_version, PLUGIN_API) {
            found.push(fault.message);
        }
        if manifest.runtime != PluginRuntime::Native
            && self.interpreters.program(manifest.runtime).is_none()
        {
            found.push(format!("there is no `{}` on this machine", manifest.runtime.name()));
        }
        if let Err(error) = AllowList::parse(&manifest.hosts) {
            found.push(format!("its hosts cannot be allowed: {error}"));
        }
        for tool in &manifest.tools {
            found.extend(name_taken(&tool.name, &manifest.name, taken));
        }
        for capability in &manifest.required_capabilities {
            found.extend(self.denied(capability, manifest));
        }
        found
    }

    /// Why it cannot have a capability, if it cannot.
    fn denied(&self, capability: &str, manifest: &Manifest) -> Option<String> {
        let shown = Excerpt::new(capability, 60);
        if !CAPABILITIES.contains(&capability) {
            let known = CAPABILITIES.join(", ");
            return Some(format!("no plugin can have `{shown}` (there are: {known})"));
        }
        let subject = Subject {
            paths: manifest.reads.clone(),
            isolation: Isolation::Sandbox,
            ..Subject::default()
        };
        let params = Json::empty_object();
        let request = KernelRequest::call("may", MODEL, "may a plugin", capability, params);
        let tags = [THIRD_PARTY.to_owned()].into();
        let caller = Caller { tags, ..Caller::default() };
        let facts = Facts::new(&request, KernelState::Idle).about(&subject).by(&caller);
        let built_in = BuiltIn::new(self.kept.iter().cloned());
        let rules = self.policy.rules();
        let all = rules.iter().map(|rule| &**rule).chain([&built_in as &dyn Rule]);
        match fold(all, &facts) {
            // A person is asked about every such call; that is no reason against the plugin.
            Verdict::Allow(_) | Verdict::Review(_) => None,
            Verdict::Pass => {
                Some(format!("it needs `{shown}`, which no rule of the policy allows"))
            }
            Verdict::Deny(reasons) => {
                let why = Verdict::Deny(reasons).to_string();
                Some(format!("it needs `{shown}`: {}", Excerpt::new(&why, 300)))
            }
        }
    }
}

/// Why a tool of a plugin cannot have its name, if it cannot.
fn name_taken(tool: &str, plugin: &PluginName, taken: &Taken) -> Option<String> {
    let form = outside(tool);
    let ours = || known_calls().chain(OFFERED).chain(["echo", "add"]);
    if let Some(own) = ours().find(|own| outside(own) == form) {
        return Some(format!("`{tool}` is a tool of ours, `{own}`"));
    }
    let group = tool.split('.').next().unwrap_or(tool);
    let groups = ours().filter_map(|own| own.split_once('.')).map(|(group, _)| group);
    if groups.chain(OWN_GROUPS).any(|own| own == group) {
        return Some(format!("`{tool}`: tools called `{group}.…` are ours alone"));
    }
    let other = taken.get(&form).filter(|other| *other != plugin)?;
    Some(format!("`{tool}` is a tool of plugin `{other}`"))
}
