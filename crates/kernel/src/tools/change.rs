//! `fs.write`, `fs.edit` and `fs.delete`: one file, changed in a sandbox and taken as a step.

use std::sync::Arc;

use fluffy_base::{Json, ProjectPath};
use serde_json::{Value, json};

use super::Views as _;
use super::arguments::{self, text};
use crate::session::{Desk, failed};
use crate::workshop::{Edit, Taking};
use crate::{Clerk, Tool, ToolError, ToolSpec};

/// Which of the three.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Write,
    Edit,
    Delete,
}

/// A tool that changes one file.
pub(crate) struct ChangeFile {
    pub(crate) kind: Kind,
    pub(crate) desk: Arc<Desk>,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Write => "fs.write",
            Self::Edit => "fs.edit",
            Self::Delete => "fs.delete",
        }
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::Write => "Writes a whole file",
            Self::Edit => "Replaces a text that occurs once in a file (all: everywhere)",
            Self::Delete => "Deletes a file",
        }
    }

    fn spec(self) -> ToolSpec {
        let text = || json!({ "type": "string" });
        let (properties, required) = match self {
            Self::Write => (json!({ "path": text(), "content": text() }), &["path", "content"][..]),
            Self::Edit => (
                json!({ "path": text(), "old": text(), "new": text(), "all": { "type": "boolean" } }),
                &["path", "old", "new"][..],
            ),
            Self::Delete => (json!({ "path": text() }), &["path"][..]),
        };
        arguments::acting(self.name(), self.summary(), properties, required)
    }

    fn edit(self, params: &Json) -> Result<Edit, ToolError> {
        let path = ProjectPath::parse(text(params, "path")?);
        let path = path.map_err(|error| ToolError(error.to_string()))?;
        Ok(match self {
            Self::Write => Edit::Write { path, content: text(params, "content")?.to_owned() },
            Self::Edit => Edit::Replace {
                path,
                old: text(params, "old")?.to_owned(),
                new: text(params, "new")?.to_owned(),
                all: arguments::flag(params, "all"),
            },
            Self::Delete => Edit::Delete { path },
        })
    }
}

impl Tool for ChangeFile {
    fn spec(&self) -> ToolSpec {
        self.kind.spec()
    }

    fn notes(&self, params: &Json) -> Vec<String> {
        self.desk.left_changes.notes(params)
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        if let Some(left) = self.desk.left_changes.find(clerk.request_id(), params) {
            // The session takes it with all else that the command left.
            return Ok(json!({ "path": text(params, "path")?, "left_by": left.command }));
        }
        let edit = self.kind.edit(params)?;
        let view = self.desk.view();
        let taking =
            Taking { blobs: &view.blobs, files: &|path| vec![path.clone()], skip: &|_| false };
        let layer = self.desk.layer();
        let layers = [layer.path().to_owned()];
        let produced = self.desk.workshop.edit(&layers, &edit, &taking);
        let produced = produced.map_err(|error| failed(&error))?;
        // No sandbox sees it any more, so that it can take the step.
        drop(layer);
        let bytes = match &produced {
            crate::Produced::File(_, stored) => stored.bytes,
            crate::Produced::Nothing(_) => 0,
        };
        let path = edit.path().as_str();
        Ok(match self.desk.take(clerk, &[produced])? {
            Some(step) => json!({ "path": path, "bytes": bytes, "step": step.number }),
            None => json!({ "path": path, "bytes": bytes, "unchanged": true }),
        })
    }
}
