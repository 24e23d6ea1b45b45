//! The tools a kernel knows: each registered by hand, none found or loaded by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fluffy_base::{Excerpt, Json, KernelRequest, ProjectPath};
use fluffy_policy::{
    CallError, Facts, Layer, Reason, Rule, Subject, THIRD_PARTY, Verdict, core_tags,
};
use jsonschema::Validator;
use serde_json::Value;

use crate::{Add, Echo, Effect, RegistryError, Tool, ToolSpec};

/// How many schema errors one refusal names.
const SHOWN_ERRORS: usize = 5;

/// The rule that a tool has to be registered.
pub(crate) const REGISTERED: &str = "registry";

/// The tools a kernel knows.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<String, Registered>,
}

pub(crate) struct Registered {
    pub(crate) tool: Box<dyn Tool>,
    pub(crate) spec: ToolSpec,
    validator: Validator,
    confined_to: Option<Vec<ProjectPath>>,
    /// The tags of whoever's tool it is.
    pub(crate) tags: &'static [&'static str],
}

impl Registry {
    /// A registry with `echo` and `add`.
    pub fn with_builtins() -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        registry.register(Box::new(Echo))?;
        registry.register(Box::new(Add))?;
        Ok(registry)
    }

    /// Adds a tool.
    pub fn register(&mut self, tool: Box<dyn Tool>) -> Result<(), RegistryError> {
        let (spec, confined_to) = (tool.spec(), tool.confined_to());
        let name = &*spec.name;
        if !is_tool_name(name) {
            return Err(RegistryError::Name(Excerpt::new(name, 100).to_string()));
        }
        if self.tools.contains_key(name) {
            return Err(RegistryError::Duplicate(name.to_owned()));
        }
        let closed = spec.schema.get("type").and_then(Value::as_str) == Some("object")
            && spec.schema.get("additionalProperties") == Some(&Value::Bool(false));
        if !closed {
            return Err(RegistryError::Open(name.to_owned()));
        }
        if let Some(argument) = undeclared_path(&spec).filter(|_| confined_to.is_none()) {
            return Err(RegistryError::Path { tool: name.to_owned(), argument });
        }
        let validator = jsonschema::validator_for(&spec.schema).map_err(|error| {
            RegistryError::Schema { tool: name.to_owned(), problem: error.to_string() }
        })?;
        // No plugin has a name of ours.
        let tags = match tool.tags() {
            [] => core_tags(name),
            own => own,
        };
        let name = name.to_owned();
        self.tools.insert(name, Registered { tool, spec, validator, confined_to, tags });
        Ok(())
    }

    /// What is known of every tool, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|registered| &registered.spec)
    }

    /// The names of the tools of plugins that a person installed.
    pub(crate) fn third_party(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().filter(|(_, tool)| tool.tags.contains(&THIRD_PARTY));
        tools.map(|(name, _)| name.as_str())
    }

    /// The tags that rules know the call of a request by, whoever sends it.
    pub(crate) fn tags(&self, request: &KernelRequest) -> &'static [&'static str] {
        let call = request.tool_call.as_ref();
        call.and_then(|call| self.find(&call.name)).map_or(&[], |found| found.tags)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Registered> {
        self.tools.get(name)
    }
}

impl Registered {
    /// What running it can change.
    pub(crate) fn effect(&self) -> Effect {
        self.spec.effect
    }

    /// What a call with these parameters acts on.
    pub(crate) fn subject(&self, params: &Json) -> Result<Subject, CallError> {
        let mut subject = self.spec.shape.subject(params)?;
        if let Some(programs) = self.tool.programs(params).map_err(CallError::Command)? {
            subject.pipeline = programs.commands;
            subject.paths.extend(programs.folders);
        }
        subject.paths.extend(self.confined_to.iter().flatten().cloned());
        Ok(subject)
    }

    /// What the schema has against these parameters.
    pub(crate) fn objections(&self, params: &Json) -> Option<String> {
        if self.validator.is_valid(params.value()) {
            return None;
        }
        let errors = self.validator.iter_errors(params.value()).take(SHOWN_ERRORS);
        let texts: Vec<_> = errors
            .map(|error| {
                let place = error.instance_path().to_string();
                let text = error.masked_with("value").to_string();
                let text = Excerpt::new(&text, 200).to_string();
                if place.is_empty() {
                    text
                } else {
                    format!("{text} (at {})", Excerpt::new(&place, 60))
                }
            })
            .collect();
        Some(texts.join("; "))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

/// Denies tools that nobody registered.
pub(crate) struct OnlyRegistered(pub(crate) Arc<Registry>);

impl Rule for OnlyRegistered {
    fn name(&self) -> &str {
        REGISTERED
    }

    fn layer(&self) -> Layer {
        Layer::BuiltIn
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let Some(name) = facts.tool() else { return Verdict::Pass };
        if self.0.find(name).is_some() {
            return Verdict::Pass;
        }
        let known: Vec<_> = self.0.tools.keys().map(String::as_str).collect();
        let text = format!("Tool '{}' is not registered", Excerpt::new(name, 100));
        let hint = format!("registered tools: {}", known.join(", "));
        Verdict::deny(Reason::new(self.layer(), self.name(), &text).with_hint(&hint))
    }
}

/// A parameter that by its name is a path and is not declared as one: rules would not see it.
fn undeclared_path(spec: &ToolSpec) -> Option<String> {
    let properties = spec.schema.get("properties").and_then(Value::as_object)?;
    let looks = |name: &&String| {
        let words = name.to_lowercase();
        ["path", "file", "dir", "cwd", "folder"].iter().any(|word| words.contains(word))
    };
    let declared = |name: &&String| spec.shape.paths.contains(&name.as_str());
    properties.keys().filter(looks).find(|name| !declared(name)).cloned()
}

pub(crate) fn is_tool_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    name.len() <= 64 && name.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use fluffy_policy::Shape;
    use serde_json::json;

    use super::*;
    use crate::ToolError;

    struct Named(&'static str, Value);

    impl Tool for Named {
        fn spec(&self) -> ToolSpec {
            let (name, schema) = (self.0, self.1.clone());
            let (name, summary) = (name.into(), "".into());
            ToolSpec { name, summary, schema, effect: Effect::None, shape: Shape::PLAIN }
        }

        fn run(&self, _: &Json, _: &dyn crate::Clerk) -> Result<Value, ToolError> {
            Ok(Value::Null)
        }
    }

    fn closed() -> Value {
        json!({"type": "object", "additionalProperties": false})
    }

    fn refusal(name: &'static str, schema: Value) -> String {
        let mut registry = Registry::with_builtins().unwrap();
        registry.register(Box::new(Named(name, schema))).unwrap_err().to_string()
    }

    #[test]
    fn a_tool_is_registered_once_under_a_plain_name_with_a_closed_schema() {
        assert_eq!(refusal("echo", closed()), "a tool `echo` is already registered");
        for name in ["", "Echo", "a b", ".a", "a.", "a..b", "é", "_a", "1a"] {
            assert!(refusal(name, closed()).contains("is no name for a tool"), "{name}");
        }
        assert!(refusal("x", json!({"type": "object"})).contains("additionalProperties"));
        let broken = json!({"type": "object", "additionalProperties": false, "required": 1});
        assert!(refusal("x", broken).contains("schema of tool `x` is not valid"));
        assert!(Registry::default().register(Box::new(Named("fs.read", closed()))).is_ok());
    }

    #[test]
    fn pol_5_our_own_tools_have_the_tags_of_core_plugins_and_no_other_name_has_them() {
        let mut registry = Registry::with_builtins().unwrap();
        for name in ["fs.read", "fs.write", "fs.read_all", "shell.run"] {
            registry.register(Box::new(Named(name, closed()))).unwrap();
        }
        let tags = |name: &str| {
            registry.tags(&KernelRequest::call("r", "a", "i", name, Json::empty_object()))
        };
        assert_eq!(tags("fs.read"), ["core_plugin"]);
        assert_eq!(tags("fs.write"), ["core_plugin", "trusted_write"]);
        for name in ["fs.read_all", "shell.run", "echo", "fs.list"] {
            assert!(tags(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_schema_names_what_it_objects_to_and_does_not_repeat_values() {
        let registry = Registry::with_builtins().unwrap();
        let params = Json::new(json!({"a": "secret-value", "c": 1})).unwrap();
        let text = registry.find("add").unwrap().objections(&params).unwrap();
        assert!(text.contains("at /a") && text.contains("'c' was unexpected"), "{text}");
        assert!(text.contains("\"b\" is a required property"), "{text}");
        assert!(!text.contains("secret-value"), "{text}");
    }
}
