//! A trusted skill as a tool of the kernel's.

use std::sync::Arc;

use fluffy_base::{Excerpt, Json, ProjectPath};
use fluffy_kernel::{Clerk, Effect, Isolation, Shape, Tool, ToolError, ToolSpec, causes};
use serde_json::Value;

use super::{Finished, Grant, RunError, Runs, schema};
use crate::{Proposal, SideEffect, Standing};

/// How much of a description a model is told.
const MAX_SUMMARY: usize = 300;

/// A trusted skill as a tool. What it may do was fixed when it was promoted; its parameters are its input and nothing else.
pub struct SkillTool {
    runs: Arc<Runs>,
    proposal: Proposal,
    schema: Value,
}

impl Runs {
    /// Every skill that is trusted now, as a tool, by name. One that cannot be used as a tool is left out and named.
    pub fn tools(self: &Arc<Self>) -> Result<(Vec<SkillTool>, Vec<RunError>), RunError> {
        let (mut tools, mut left_out) = (Vec::new(), Vec::new());
        for listed in self.options.shelf.skills()? {
            if listed.standing != Standing::Trusted {
                continue;
            }
            match self.tool(&listed.name) {
                Ok(tool) => tools.push(tool),
                Err(error) => left_out.push(error),
            }
        }
        Ok((tools, left_out))
    }

    /// One skill as a tool.
    pub fn tool(self: &Arc<Self>, name: &crate::SkillName) -> Result<SkillTool, RunError> {
        let proposal = self.options.shelf.trusted(name)?.spec;
        let schema = schema::closed(&proposal)?;
        Ok(SkillTool { runs: Arc::clone(self), proposal, schema })
    }
}

impl SkillTool {
    /// What was proposed.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> ToolSpec {
        let class = self.proposal.side_effect;
        let changes = class == SideEffect::FileWrite && !self.proposal.writes.is_empty();
        ToolSpec {
            name: self.proposal.name.tool_name().into(),
            summary: Excerpt::new(&self.proposal.description, MAX_SUMMARY).to_string().into(),
            schema: self.schema.clone(),
            effect: match class {
                SideEffect::ReadOnly => Effect::None,
                SideEffect::FileWrite
                | SideEffect::Network
                | SideEffect::SecretRead
                | SideEffect::Money
                | SideEffect::Messaging => Effect::Some,
            },
            shape: Shape {
                changes,
                isolation: Isolation::Sandbox,
                side_effect: Some(class.name()),
                ..Shape::PLAIN
            },
        }
    }

    fn confined_to(&self) -> Option<Vec<ProjectPath>> {
        let grant = Grant::of(&self.proposal);
        let touched = if grant.writes.is_empty() { grant.reads } else { grant.writes };
        Some(touched.to_vec())
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let finished = self.runs.perform(&self.proposal, params, clerk);
        let answer = told(&finished);
        let _nobody_waits = self.runs.leave(clerk.request_id(), finished);
        answer
    }

    fn notes(&self, _: &Json) -> Vec<String> {
        let grant = Grant::of(&self.proposal);
        let paths = |list: &[ProjectPath]| {
            list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let class = format!("class: {}", self.proposal.side_effect);
        let lists = [
            ("reads", paths(grant.reads)),
            ("writes", paths(grant.writes)),
            ("hosts", grant.hosts.join(", ")),
            ("secrets", grant.secrets.join(", ")),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let lines = lists.map(|(what, list)| format!("{what}: {}", Excerpt::new(&list, 500)));
        std::iter::once(class).chain(lines).collect()
    }
}

/// What the caller is told of a run.
fn told(finished: &Result<Finished, RunError>) -> Result<Value, ToolError> {
    match finished {
        Ok(Finished { output: Some(output), .. }) => Ok(output.value().clone()),
        Ok(Finished { record, .. }) => {
            let why = record.error.as_ref().map(ToString::to_string).unwrap_or_default();
            Err(ToolError(format!("run {}: {why}", record.execution)))
        }
        Err(error) => Err(ToolError(format!("{}; {}", causes(error), error.fix()))),
    }
}
