//! `fs.list`: what a directory holds.

use std::sync::Arc;

use fluffy_base::{Json, ProjectPath};
use serde_json::{Map, Value, json};

use super::reading::Reading;
use super::{Views, arguments, exists};
use crate::{Failure, Found, ToolError, ToolSpec, TreeError, View};

const MAX_ENTRIES: usize = 1000;

/// Lists a directory, or every file beneath it.
pub struct FsList {
    views: Arc<dyn Views>,
}

impl FsList {
    /// On these files.
    pub fn new(views: Arc<dyn Views>) -> Self {
        Self { views }
    }

    fn entries(&self, view: &View, directory: Option<&ProjectPath>) -> Result<Listed, TreeError> {
        let listing = view.list(directory)?;
        let all = listing.entries.len();
        let readable = |path: &ProjectPath, found| match found {
            Found::Directory => true,
            Found::File { .. } | Found::Link | Found::Special => self.views.may_read(path),
        };
        let mut kept = listing.entries;
        kept.retain(|entry| readable(&entry.path, entry.found));
        let (denied, total) = (all - kept.len(), kept.len());
        let entries = kept.into_iter().take(MAX_ENTRIES);
        let entries = entries.map(|entry| told(entry.path.file_name(), entry.found)).collect();
        Ok(Listed { entries, total, denied, unnamed: listing.unnamed, unreadable: 0 })
    }

    /// Files only, with their way from the directory: the directories can be seen in it.
    fn files(&self, view: &View, directory: Option<&ProjectPath>) -> Result<Listed, TreeError> {
        let walked = view.walk(directory)?;
        let all = walked.files.len();
        let mut files = walked.files;
        files.retain(|path| self.views.may_read(path));
        let (denied, total) = (all - files.len(), files.len());
        let prefix = directory.map_or(0, |path| path.as_str().len() + 1);
        let mut entries = Vec::new();
        for path in files.iter().take(MAX_ENTRIES) {
            // One that vanished meanwhile is not told.
            let Ok(Some(found)) = view.look(path) else { continue };
            entries.push(told(path.as_str().get(prefix..).unwrap_or_default(), found));
        }
        let (unnamed, unreadable) = (walked.unnamed, walked.unreadable);
        Ok(Listed { entries, total, denied, unnamed, unreadable })
    }
}

/// What is told of a directory.
struct Listed {
    entries: Vec<Value>,
    total: usize,
    denied: usize,
    unnamed: usize,
    unreadable: usize,
}

impl Reading for FsList {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "path": {"type": "string"},
            "recursive": {"type": "boolean", "description": "files only, without ignored ones"},
        });
        arguments::reading("fs.list", "Lists a directory", properties, &[])
    }

    fn read(&self, params: &Json) -> Result<Value, Failure> {
        let directory = arguments::directory(params)?;
        let (view, directory) = (self.views.view(), directory.as_ref());
        let listed = if arguments::flag(params, "recursive") {
            self.files(&view, directory)
        } else {
            self.entries(&view, directory)
        };
        let listed = listed.map_err(|error| match &error {
            TreeError::NotADirectory(_) => {
                ToolError(format!("{error}; fs.read reads files")).into()
            }
            other => arguments::told(other),
        })?;
        let mut answer = Map::new();
        answer.insert("path".to_owned(), arguments::shown(directory).into());
        arguments::count(&mut answer, "more", listed.total.saturating_sub(MAX_ENTRIES));
        arguments::count(&mut answer, "denied", listed.denied);
        arguments::count(&mut answer, "unnamed", listed.unnamed);
        arguments::count(&mut answer, "unreadable", listed.unreadable);
        answer.insert("entries".to_owned(), listed.entries.into());
        Ok(answer.into())
    }
}

fn told(name: &str, found: Found) -> Value {
    match found {
        Found::File { bytes, .. } => json!({"name": name, "bytes": bytes}),
        Found::Directory => json!({"name": format!("{name}/")}),
        Found::Link | Found::Special => json!({"name": name, "kind": exists::kind(found)}),
    }
}
