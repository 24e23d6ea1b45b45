//! A plugin's tool as a tool of the kernel's.

use std::sync::Arc;

use fluffy_base::{Excerpt, Json, ProjectPath};
use fluffy_policy::{Isolation, Shape, THIRD_PARTY};
use jsonschema::Validator;
use serde_json::Value;

use super::call::Plugin;
use super::{PluginError, ToolDefinition};
use crate::{Clerk, Effect, RegistryError, Tool, ToolError, ToolSpec};

/// How many objections to a result are told.
const SHOWN: usize = 5;

/// A tool of a plugin. What the plugin may do was fixed when it was installed; the parameters are its input, nothing else.
pub struct PluginTool {
    plugin: Arc<Plugin>,
    tool: ToolDefinition,
    /// What its result has to look like.
    result: Option<Validator>,
}

impl PluginTool {
    /// All tools of a plugin.
    pub(super) fn all(plugin: &Arc<Plugin>) -> Result<Vec<Self>, PluginError> {
        plugin.manifest().tools.iter().map(|tool| Self::new(plugin, tool.clone())).collect()
    }

    fn new(plugin: &Arc<Plugin>, tool: ToolDefinition) -> Result<Self, PluginError> {
        let unusable = |problem: String| RegistryError::Schema { tool: tool.name.clone(), problem };
        let result = tool.result.as_ref().map(jsonschema::validator_for).transpose();
        let result = result.map_err(|error| unusable(error.to_string()))?;
        Ok(Self { plugin: Arc::clone(plugin), tool, result })
    }
}

impl Tool for PluginTool {
    fn spec(&self) -> ToolSpec {
        // Without hosts it changes nothing outside its own sandbox, whatever it does.
        let network = self.plugin.manifest().has_network();
        let (effect, side_effect) =
            if network { (Effect::Some, "NETWORK") } else { (Effect::None, "READ_ONLY") };
        ToolSpec {
            name: self.tool.name.clone().into(),
            summary: self.tool.description.clone().into(),
            schema: self.tool.parameters.clone(),
            effect,
            shape: Shape {
                isolation: Isolation::Sandbox,
                side_effect: Some(side_effect),
                ..Shape::PLAIN
            },
        }
    }

    fn confined_to(&self) -> Option<Vec<ProjectPath>> {
        Some(self.plugin.manifest().reads.clone())
    }

    fn tags(&self) -> &'static [&'static str] {
        &[THIRD_PARTY]
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let value = self.plugin.call(&self.tool, params, clerk)?;
        let Some(validator) = &self.result else { return Ok(value) };
        if validator.is_valid(&value) {
            return Ok(value);
        }
        let errors = validator.iter_errors(&value).take(SHOWN);
        let errors = errors.map(|error| error.masked_with("value").to_string());
        let why = errors.collect::<Vec<_>>().join("; ");
        let (name, why) = (&self.plugin.manifest().name, Excerpt::new(&why, 500));
        Err(ToolError(format!("plugin {name}: its result is not what its manifest says: {why}")))
    }

    fn notes(&self, _: &Json) -> Vec<String> {
        let manifest = self.plugin.manifest();
        let mut notes = vec![format!("plugin: {} {}", manifest.name, manifest.version)];
        if !manifest.hosts.is_empty() {
            notes.push(format!("hosts: {}", manifest.hosts.join(", ")));
        }
        if !manifest.reads.is_empty() {
            let reads: Vec<_> = manifest.reads.iter().map(ToString::to_string).collect();
            notes.push(format!("reads: {}", reads.join(", ")));
        }
        notes
    }
}
