//! `fs.exists`: whether something stands at a path, and what.

use std::sync::Arc;

use fluffy_base::Json;
use serde_json::{Value, json};

use super::reading::Reading;
use super::{Views, arguments};
use crate::{Failure, Found, ToolSpec};

/// Says what stands at a path.
pub struct FsExists {
    views: Arc<dyn Views>,
}

impl FsExists {
    /// On these files.
    pub fn new(views: Arc<dyn Views>) -> Self {
        Self { views }
    }
}

impl Reading for FsExists {
    fn spec(&self) -> ToolSpec {
        let properties = json!({"path": {"type": "string"}});
        arguments::reading(
            "fs.exists",
            "Whether a path exists, and its kind",
            properties,
            &["path"],
        )
    }

    fn read(&self, params: &Json) -> Result<Value, Failure> {
        let found = match arguments::directory(params)? {
            None => Some(Found::Directory),
            Some(path) => self.views.view().look(&path).map_err(|e| arguments::told(&e))?,
        };
        Ok(json!({"exists": found.is_some(), "kind": found.map(kind)}))
    }
}

/// The word for what stands at a path.
pub(super) fn kind(found: Found) -> &'static str {
    match found {
        Found::File { .. } => "file",
        Found::Directory => "directory",
        Found::Link => "link",
        Found::Special => "special",
    }
}
