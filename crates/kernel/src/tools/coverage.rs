//! `session.keep_coverage`: the session's own call that puts the project's coverage baseline among finished work.
//!
//! **Invariant.** The numbers are those that the kernel found out by its own run; a rule compares them.

use std::sync::Arc;

use fluffy_base::Json;
use fluffy_policy::Shape;
use fluffy_workflow::Lines;
use serde_json::{Value, json};

use super::arguments;
use crate::session::{Desk, KEEP_COVERAGE};
use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

/// Puts the baseline among finished work.
pub(crate) struct KeepCoverage(pub(crate) Arc<Desk>);

impl Tool for KeepCoverage {
    fn spec(&self) -> ToolSpec {
        let number = || json!({ "type": "integer", "minimum": 0 });
        ToolSpec {
            name: KEEP_COVERAGE.into(),
            summary: "Puts the coverage baseline among finished work".into(),
            schema: arguments::closed(
                json!({
                    "path": { "type": "string" },
                    "covered": number(),
                    "total": number(),
                }),
                &["path"],
            ),
            effect: Effect::Some,
            // What is changed is staged, and the merge that holds it is judged like any other.
            shape: Shape { paths: &["path"], ..Shape::PLAIN },
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let number = |name: &str| params.value().get(name).and_then(Value::as_u64);
        let lines = number("covered").zip(number("total"));
        let lines = lines.map(|(covered, total)| Lines { covered, total });
        self.0.keep_coverage(clerk, lines)?;
        Ok(json!({ "raised": lines.is_some() }))
    }
}
