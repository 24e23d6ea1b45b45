//! `fs.write`, `fs.edit` and `fs.delete`: one file, changed in a sandbox and taken as a step.

use std::sync::Arc;

use fluffy_base::{Json, ProjectPath};
use serde_json::{Value, json};

use super::Views as _;
use super::{text, text_or_empty};
use crate::session::{Desk, failed};
use crate::workshop::{Edit, Taking};
use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

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

    fn schema(self) -> Value {
        let text = || json!({ "type": "string" });
        let (properties, required) = match self {
            Self::Write => {
                (json!({ "path": text(), "content": text() }), json!(["path", "content"]))
            }
            Self::Edit => (
                json!({ "path": text(), "old": text(), "new": text(), "all": { "type": "boolean" } }),
                json!(["path", "old", "new"]),
            ),
            Self::Delete => (json!({ "path": text() }), json!(["path"])),
        };
        json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false })
    }

    fn edit(self, params: &Json) -> Result<Edit, ToolError> {
        let path = ProjectPath::parse(text(params, "path")?);
        let path = path.map_err(|error| ToolError(error.to_string()))?;
        Ok(match self {
            Self::Write => Edit::Write { path, content: text_or_empty(params, "content") },
            Self::Edit => Edit::Replace {
                path,
                old: text_or_empty(params, "old"),
                new: text_or_empty(params, "new"),
                all: params.value().get("all").and_then(Value::as_bool).unwrap_or(false),
            },
            Self::Delete => Edit::Delete { path },
        })
    }
}

impl Tool for ChangeFile {
    fn spec(&self) -> ToolSpec {
        let name = self.kind.name();
        ToolSpec {
            name,
            summary: self.kind.summary(),
            schema: self.kind.schema(),
            effect: Effect::Some,
            shape: super::shape(name),
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let edit = self.kind.edit(params)?;
        let view = self.desk.view();
        let taking =
            Taking { blobs: &view.blobs, files: &|path| vec![path.clone()], skip: &|_| false };
        let layer = self.desk.layer();
        let layers = [layer.path().to_owned()];
        let produced = self.desk.workshop.edit(&layers, &edit, &taking);
        let produced = produced.map_err(|error| failed(&error))?;
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
