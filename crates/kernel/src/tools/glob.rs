//! `search.glob`: the files whose path a pattern names, in the dialect of the policy.

use std::sync::Arc;

use fluffy_base::{Clock, Json, ProjectPath, SystemClock};
use fluffy_policy::Glob;
use serde_json::{Map, Value, json};

use super::deadline::Deadline;
use super::reading::Reading;
use super::{Views, arguments};
use crate::{Failure, ToolError, ToolSpec};

const MAX_FILES: usize = 1000;

/// How many files are compared between two looks at the clock.
const STRIDE: usize = 256;

/// Finds files by their path.
pub struct SearchGlob {
    views: Arc<dyn Views>,
    clock: Arc<dyn Clock>,
}

impl SearchGlob {
    /// On these files.
    pub fn new(views: Arc<dyn Views>) -> Self {
        Self { views, clock: Arc::new(SystemClock) }
    }
}

impl Reading for SearchGlob {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "pattern": {"type": "string", "description": "`*.rs` at any depth, `src/**/*.{ts,js}`"},
            "path": {"type": "string"},
        });
        let summary = "Finds files by their path, without ignored ones";
        arguments::reading("search.glob", summary, properties, &["pattern"])
    }

    fn read(&self, params: &Json) -> Result<Value, Failure> {
        let pattern = Pattern::parse(arguments::text(params, "pattern")?)?;
        let directory = arguments::directory(params)?;
        let deadline = Deadline::new(&self.clock);
        let walked = self.views.view().walk(directory.as_ref());
        let walked = walked.map_err(|error| arguments::told(&error))?;
        let (mut files, mut total, mut denied) = (Vec::new(), 0_usize, 0);
        for chunk in walked.files.chunks(STRIDE) {
            if deadline.is_over() {
                return Err(Deadline::error().into());
            }
            for path in chunk {
                // Asked first: whether a pattern names a denied file must not show in the number.
                if !self.views.may_read(path) {
                    denied += 1;
                } else if pattern.matches(path, directory.as_ref()) {
                    total += 1;
                    if files.len() < MAX_FILES {
                        files.push(Value::from(path.as_str()));
                    }
                }
            }
        }
        let mut answer = Map::new();
        arguments::count(&mut answer, "more", total.saturating_sub(MAX_FILES));
        arguments::count(&mut answer, "denied", denied);
        arguments::count(&mut answer, "unnamed", walked.unnamed);
        arguments::count(&mut answer, "unreadable", walked.unreadable);
        answer.insert("files".to_owned(), files.into());
        Ok(answer.into())
    }
}

/// A pattern as a model means it: from the project's root, or from the directory it looks in.
pub(super) struct Pattern(Glob);

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        Glob::parse(text).map(Self).map_err(|error| ToolError(error.to_string()))
    }

    pub(super) fn matches(&self, path: &ProjectPath, directory: Option<&ProjectPath>) -> bool {
        let inside = directory.and_then(|directory| {
            let rest = path.as_str().strip_prefix(directory.as_str())?.strip_prefix('/')?;
            ProjectPath::parse(rest).ok()
        });
        self.0.matches(path) || inside.is_some_and(|path| self.0.matches(&path))
    }
}
