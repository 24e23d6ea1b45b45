//! `session.merge`: the session's own call that puts finished work into the project.
//!
//! **Invariant.** What is merged is the plan that was judged: its digest is compared again right before.

use std::sync::Arc;

use fluffy_base::{Json, ProjectPath};
use fluffy_policy::Shape;
use fluffy_workflow::{Answer, Event};
use serde_json::{Value, json};

use super::Views as _;
use super::arguments::{self, text};
use crate::environments::place_in_project;
use crate::merge::{Plan, carry_out};
use crate::session::{Desk, Entry, MERGE, Merged, failed};
use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

/// Puts finished work into the project.
pub(crate) struct Merge(pub(crate) Arc<Desk>);

impl Merge {
    /// Puts installed packages where the person's own commands look for them, if the project keeps that folder out of commits.
    /// The work is merged in any case: what could not be placed is told.
    fn place_environments(&self) -> Vec<String> {
        let view = self.0.view();
        let ignored = view.ignoring();
        let mut unplaced = Vec::new();
        for environment in self.0.workshop.environments().all() {
            let record = &environment.record;
            let folder = ProjectPath::parse(&record.folder);
            let wanted = record.manager.installs_into_project();
            if !wanted || !folder.is_ok_and(|folder| ignored(&folder)) {
                continue;
            }
            if let Err(error) = place_in_project(&environment, self.0.tree.path()) {
                unplaced.push(format!("`{}`: {}", record.folder, failed(&error).0));
            }
        }
        unplaced
    }
}

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
        let unplaced = self.place_environments();
        if unplaced.is_empty() {
            return Ok(json!({ "files": count }));
        }
        Ok(json!({ "files": count, "environments_not_placed": unplaced }))
    }

    fn notes(&self, _: &Json) -> Vec<String> {
        let inside = self.0.look();
        let diff =
            Plan::of(&inside.staging).ok().and_then(|plan| plan.diff(inside.staging.blobs()).ok());
        diff.map(|diff| diff.text().into_owned()).into_iter().collect()
    }
}
