//! `session.merge`: the session's own call that puts finished work into the project.
//!
//! **Invariant.** What is merged is the plan that was judged: its digest is compared again right before.

use std::sync::Arc;

use fluffy_base::Json;
use fluffy_policy::Shape;
use fluffy_workflow::{Answer, Event};
use serde_json::{Value, json};

use super::arguments::{self, text};
use crate::merge::{Plan, carry_out};
use crate::session::{Desk, Entry, MERGE, Merged, failed};
use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

/// Puts finished work into the project.
pub(crate) struct Merge(pub(crate) Arc<Desk>);

impl Tool for Merge {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: MERGE.into(),
            summary: "Puts finished work into the project".into(),
            schema: arguments::closed(
                json!({
                    "plan": { "type": "string" },
                    "paths": { "type": "array", "items": { "type": "string" } },
                }),
                &["plan", "paths"],
            ),
            effect: Effect::Some,
            shape: Shape { paths: &["paths"], ..Shape::PLAIN },
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let plan = Plan::of(&self.0.look().staging).map_err(|error| failed(&error))?;
        let digest = plan.digest().to_string();
        if digest != text(params, "plan")? {
            return Err(ToolError("the files were changed since they were judged".to_owned()));
        }
        // Should the workflow have something against it, it must say so before and not after.
        let approved = Event::ReviewAnswered(Answer::Approved);
        let asked = self.0.look().workflow.clone().apply(approved.clone());
        asked.map_err(|error| ToolError(format!("{error}; {}", error.fix)))?;
        let files = plan.operations().iter().map(|operation| Merged {
            path: operation.path.clone(),
            now: operation.new.file(),
            before: operation.expected.file().is_some(),
        });
        let files: Vec<Merged> = files.collect();
        let entry = Entry::Merging { files: files.clone(), plan: digest };
        clerk.record(entry.note()?)?;
        carry_out(&plan, &self.0.tree, &self.0.dir).map_err(|error| failed(&error))?;
        clerk.record(Entry::MergeDone.note()?)?;
        let count = files.len();
        self.0.merged(files)?;
        self.0.happened(clerk, approved)?;
        Ok(json!({ "files": count }))
    }

    fn notes(&self, _: &Json) -> Vec<String> {
        let inside = self.0.look();
        let diff =
            Plan::of(&inside.staging).ok().and_then(|plan| plan.diff(inside.staging.blobs()).ok());
        diff.map(|diff| diff.text().into_owned()).into_iter().collect()
    }
}
