//! The calls with which the model says how far it is, and asks for exemptions.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluffy_base::{Json, ProjectPath};
use fluffy_workflow::{Consent, Event, ExemptionRequest, Mode, State, Transition};
use serde_json::{Value, json};

use super::arguments::{self, text};
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
        let (properties, required) = if says {
            (json!({ "summary": { "type": "string" } }), &["summary"][..])
        } else {
            (json!({}), &[][..])
        };
        arguments::acting(name, summary, properties, required)
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
        let summary = text(params, "summary")?.to_owned();
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
        let properties = json!({
            "category": { "enum": fluffy_policy::EXEMPTIONS },
            "paths": { "type": "array", "items": { "type": "string" } },
            "reason": { "type": "string" },
        });
        arguments::acting(
            "workflow.request_exemption",
            "Asks to change files without a test",
            properties,
            &["category", "paths", "reason"],
        )
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let paths = params.value().get("paths").and_then(Value::as_array);
        let paths = paths.into_iter().flatten().filter_map(Value::as_str).map(ProjectPath::parse);
        let paths: Result<BTreeSet<_>, _> = paths.collect();
        let request = ExemptionRequest {
            category: text(params, "category")?.to_owned(),
            paths: paths.map_err(|error| ToolError(error.to_string()))?,
            reason: text(params, "reason")?.to_owned(),
        };
        self.0.exempt(clerk, request).map(|transition| told(&transition))
    }
}

impl Tool for SetMode {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SET_MODE.into(),
            summary: "Sets the session's mode".into(),
            schema: arguments::closed(
                json!({ "mode": { "enum": Mode::ALL.map(Mode::name) } }),
                &["mode"],
            ),
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

    fn notes(&self, _: &Json) -> Vec<String> {
        if !self.0.look().workflow.offers_debug() {
            return Vec::new();
        }
        let lines = [
            "in debug mode code is written without a failing test; you look at what is merged",
            "without it the work goes on as before; to switch later: fluffy session mode debug",
        ];
        lines.map(str::to_owned).to_vec()
    }
}

fn told(transition: &Transition) -> Value {
    json!({ "state": transition.to.name() })
}
