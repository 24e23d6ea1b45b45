//! `deps.install`: packages for the project; and `deps.resolve`, with which the session finds out what that means.

use std::sync::Arc;

use fluffy_base::{Digest, Json};
use serde_json::{Value, json};

use super::arguments;
use crate::session::Desk;
use crate::{Clerk, Tool, ToolError, ToolSpec};

/// Resolves or installs packages.
pub(crate) struct Packages {
    pub(crate) step: PackageStep,
    pub(crate) desk: Arc<Desk>,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageStep {
    /// The session's own call, before the model's is judged.
    Resolve,
    /// The model's call.
    Install,
}

impl Tool for Packages {
    fn spec(&self) -> ToolSpec {
        let names = json!({ "type": "array", "items": { "type": "string" } });
        let properties = json!({
            "add": names,
            "remove": names,
            "dev": { "type": "boolean" },
            "manager": { "enum": ["npm", "pnpm", "yarn", "pip", "uv", "poetry", "cargo", "go"] },
            "cwd": { "type": "string" },
        });
        let (name, summary) = match self.step {
            PackageStep::Resolve => ("deps.resolve", "Finds out what packages resolve to"),
            PackageStep::Install => (
                "deps.install",
                "Installs packages: `add` names like `express` or `flask@3`, or what the manifest says",
            ),
        };
        arguments::acting(name, summary, properties, &[])
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let desk = &*self.desk;
        let missing = || ToolError("packages cannot be installed here".to_owned());
        let dependencies = desk.dependencies.as_ref().ok_or_else(missing)?;
        match self.step {
            PackageStep::Resolve => dependencies.resolve(desk, params, clerk),
            PackageStep::Install => dependencies.install(desk, params, clerk),
        }
    }

    fn packages(&self, params: &Json) -> Vec<String> {
        let arguments = Digest::of(params.canonical().as_bytes());
        self.desk.dependencies.as_ref().map(|it| it.named(&arguments)).unwrap_or_default()
    }

    fn notes(&self, params: &Json) -> Vec<String> {
        let arguments = Digest::of(params.canonical().as_bytes());
        self.desk.dependencies.as_ref().map(|it| it.notes(&arguments)).unwrap_or_default()
    }
}
