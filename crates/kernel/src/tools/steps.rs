//! The calls with which the model says how far it is, and asks for exemptions.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluffy_base::{Json, ProjectPath};
use fluffy_workflow::{Consent, Event, ExemptionRequest, Mode, State, Transition};
use serde_json::{Value, json};

use super::{text, text_or_empty};
use crate::session::{Desk, Entry, SET_MODE};
use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

/// Which step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Said {
    Plan,
    Tests,
    Code,
    Task,
}

/// The model says that something is complete.
pub(crate) struct Complete {
    pub(crate) said: Said,
    pub(crate) desk: Arc<Desk>,
}

/// The model asks to change files without a test.
pub(crate) struct RequestExemption(pub(crate) Arc<Desk>);

/// The person sets the mode.
pub(crate) struct SetMode(pub(crate) Arc<Desk>);

impl Tool for Complete {
    fn spec(&self) -> ToolSpec {
        let (name, summary, says) = match self.said {
            Said::Plan => ("plan.complete", "Planning is done", true),
            Said::Tests => ("tests.complete", "Tests for finished code are written", false),
            Said::Code => ("code.complete", "The code is written; test.run comes next", false),
            Said::Task => ("task.complete", "All is done: validates, merges and commits", true),
        };
        let schema = if says {
            json!({ "type": "object", "properties": { "summary": { "type": "string" } },
                "required": ["summary"], "additionalProperties": false })
        } else {
            json!({ "type": "object", "properties": {}, "additionalProperties": false })
        };
        ToolSpec { name, summary, schema, effect: Effect::Some, shape: super::shape(name) }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let event = match self.said {
            Said::Plan => Event::PlanCompleted,
            Said::Tests => Event::TestsCompleted,
            Said::Code => Event::CodeCompleted,
            Said::Task => return self.complete_task(params, clerk),
        };
        self.desk.happened(clerk, event).map(|transition| told(&transition))
    }
}

impl Complete {
    fn complete_task(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let summary = text_or_empty(params, "summary");
        let (state, missing) = {
            let inside = self.desk.look();
            (inside.workflow.state(), inside.missing())
        };
        if let Some(missing) = missing {
            return Err(ToolError(missing));
        }
        if state != State::Idle {
            self.desk.happened(clerk, Event::TaskCompleted)?;
        }
        clerk.record(Entry::Completed { summary: summary.clone() }.note()?)?;
        self.desk.change().set(|inside| inside.progress.done = Some(summary));
        Ok(json!({ "done": true }))
    }
}

impl Tool for RequestExemption {
    fn spec(&self) -> ToolSpec {
        let name = "workflow.request_exemption";
        ToolSpec {
            name,
            summary: "Asks to change files without a test",
            schema: json!({
                "type": "object",
                "properties": {
                    "category": { "enum": fluffy_policy::EXEMPTIONS },
                    "paths": { "type": "array", "items": { "type": "string" } },
                    "reason": { "type": "string" },
                },
                "required": ["category", "paths", "reason"],
                "additionalProperties": false,
            }),
            effect: Effect::Some,
            shape: super::shape(name),
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let paths = params.value().get("paths").and_then(Value::as_array);
        let paths = paths.into_iter().flatten().filter_map(Value::as_str).map(ProjectPath::parse);
        let paths: Result<BTreeSet<_>, _> = paths.collect();
        let request = ExemptionRequest {
            category: text(params, "category")?.to_owned(),
            paths: paths.map_err(|error| ToolError(error.to_string()))?,
            reason: text_or_empty(params, "reason"),
        };
        self.0.exempt(clerk, request).map(|transition| told(&transition))
    }
}

impl Tool for SetMode {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SET_MODE,
            summary: "Sets the session's mode",
            schema: json!({
                "type": "object",
                "properties": { "mode": { "enum": Mode::ALL.map(Mode::name) } },
                "required": ["mode"],
                "additionalProperties": false,
            }),
            effect: Effect::Some,
            shape: fluffy_policy::Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let mode = Mode::from_name(text(params, "mode")?);
        let mode = mode.ok_or_else(|| ToolError("there is no such mode".to_owned()))?;
        let begun = !matches!(self.0.state(), State::Idle | State::Planning);
        // The gate lets these through only once a person has agreed.
        let asked = mode == Mode::Debug || (mode == Mode::Explore && begun);
        let consent = if asked { Consent::Person } else { Consent::Policy };
        let transition = self.0.happened(clerk, Event::ModeSet { mode, consent })?;
        Ok(told(&transition))
    }
}

fn told(transition: &Transition) -> Value {
    json!({ "state": transition.to.name() })
}
