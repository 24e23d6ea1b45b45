//! Counts the lines of the project's sources by kind of file.

mod fluffy_plugin;

use std::collections::BTreeMap;

use fluffy_plugin::{Context, Plugin, ToolError};
use serde_json::{json, Value};

/// Files, lines and blank lines.
#[derive(Default)]
struct Counted {
    files: u64,
    lines: u64,
    blank: u64,
}

fn count(_arguments: &Value, context: &Context) -> Result<Value, ToolError> {
    let mut kinds = BTreeMap::new();
    for folder in &context.reads {
        if context.file_exists(folder)? {
            below(context, folder, &mut kinds)?;
        }
    }
    let lines: u64 = kinds.values().map(|counted: &Counted| counted.lines).sum();
    let kinds: Vec<_> = kinds
        .iter()
        .map(|(kind, it)| json!({ "kind": kind, "files": it.files, "lines": it.lines, "blank": it.blank }))
        .collect();
    Ok(json!({ "kinds": kinds, "lines": lines }))
}

fn below(
    context: &Context,
    folder: &str,
    kinds: &mut BTreeMap<String, Counted>,
) -> Result<(), ToolError> {
    for name in context.list_dir(folder)? {
        let path = format!("{folder}/{name}");
        if let Some(inner) = path.strip_suffix('/') {
            below(context, inner, kinds)?;
            continue;
        }
        // What is no text has no lines.
        let Ok(text) = context.read_file(&path) else { continue };
        let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
        let counted = kinds.entry(kind.to_owned()).or_default();
        counted.files += 1;
        for line in text.lines() {
            counted.lines += 1;
            counted.blank += u64::from(line.trim().is_empty());
        }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    Plugin::new("lines", "1.0.0").tool("lines.count", count).run()
}
