//! Replacing the policy: read, tried on the past, agreed to by a person, written, in force.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use fluffy_base::Json;
use fluffy_policy::{Direction, PolicyFile, Shape, Trial};
use serde_json::{Value, json};

use crate::{Clerk, Effect, Tool, ToolError, ToolSpec};

/// The call that replaces the policy.
pub(crate) const NAME: &str = "policy.update";

/// More changes than this in one direction need more than a yes.
const SIMPLE_YES: usize = 5;

/// The call that replaces the policy, as far as it is a tool: the kernel itself carries it out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyUpdate;

impl Tool for PolicyUpdate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            summary: "Replaces the policy, once a person has agreed".into(),
            schema: json!({
                "type": "object",
                "properties": { "content": { "type": "string" } },
                "required": ["content"],
                "additionalProperties": false,
            }),
            effect: Effect::Some,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, _: &Json, _: &dyn Clerk) -> Result<Value, ToolError> {
        Err(ToolError("only the kernel replaces its policy".to_owned()))
    }
}

/// The text that a call wants to put in force.
pub(crate) fn content(params: &Json) -> Option<&str> {
    params.value().get("content").and_then(Value::as_str)
}

/// The policy in a call's text, or what is wrong with it.
pub(crate) fn parse(name: &str, params: &Json) -> Result<PolicyFile, String> {
    let text = content(params).ok_or("`content` is missing: the text of the new policy")?;
    PolicyFile::parse(name, text).map_err(|error| error.to_string())
}

/// What a person should know of a trial, line by line: only what changes.
pub(crate) fn notes(trial: &Trial) -> Vec<String> {
    let summary = match (trial.changes.len(), trial.looked_at) {
        (_, 0) => "there are no past decisions to try the new policy on".to_owned(),
        (0, all) => format!("none of the last {all} decisions would change"),
        (changed, all) => format!("{changed} of the last {all} decisions would change:"),
    };
    std::iter::once(summary).chain(trial.changes.iter().map(ToString::to_string)).collect()
}

/// What must be typed to agree to so many changes, if a yes is too little.
pub(crate) fn phrase(trial: &Trial) -> Option<String> {
    let (breaking, loosening) =
        (trial.count(Direction::Breaking), trial.count(Direction::Loosening));
    (breaking > SIMPLE_YES || loosening > SIMPLE_YES)
        .then(|| format!("accept {breaking} breaking and {loosening} loosening changes"))
}

/// What people call the file: its name and its folder's, whatever machine it lies on.
pub(crate) fn shown(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).map(Path::new);
    let name = path.file_name().map(Path::new).unwrap_or(path);
    folder.map_or_else(|| name.to_owned(), |folder| folder.join(name)).display().to_string()
}

/// Puts a text where the policy lies, whole or not at all.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    refuse_link(folder)?;
    refuse_link(path)?;
    std::fs::create_dir_all(folder)?;
    let fresh = folder.join(".policy.yaml.new");
    // What a crash left there is of no use to anybody.
    remove(&fresh)?;
    let moved = write_fresh(&fresh, text).and_then(|()| put_in_place(&fresh, path));
    if let Err(error) = moved {
        remove(&fresh)?;
        return Err(error);
    }
    std::fs::File::open(folder)?.sync_all()
}

/// Through a link the policy would be written to where nobody looks for it.
fn refuse_link(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            let text = format!("`{}` is a symbolic link", shown(path));
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn write_fresh(fresh: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o644).open(fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[expect(clippy::disallowed_methods, reason = "the one place that puts a policy in place")]
fn put_in_place(fresh: &Path, path: &Path) -> io::Result<()> {
    std::fs::rename(fresh, path)
}

#[expect(clippy::disallowed_methods, reason = "the file beside the policy is written here alone")]
fn remove(fresh: &Path) -> io::Result<()> {
    match std::fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
