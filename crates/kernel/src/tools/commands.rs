//! `shell.run`: a program with its arguments, in a sandbox; what it leaves is judged file by file.
//!
//! **Invariant.** All that a command left is taken, or nothing: half of a change is another change.

use std::io;
use std::sync::Arc;

use fluffy_base::{Json, ProjectPath, Span};
use fluffy_sandbox::End;
use serde_json::{Value, json};

use super::Views as _;
use super::arguments::{self, text};
use crate::files::{Found, View};
use crate::session::{Desk, failed};
use crate::workshop::{
    CommandLine, CommandRun, Current, Originals, Produced, Sight, Taken, Taking,
};
use crate::{Clerk, May, Tool, ToolError, ToolSpec};

/// How many files an answer names.
const NAMED: usize = 20;

/// The largest file that a patch may change.
const LARGEST: u64 = 16 << 20;

/// Runs a program.
pub(crate) struct RunCommand(pub(crate) Arc<Desk>);

impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "command": { "type": "string" },
            "args": { "type": "array", "items": { "type": "string" } },
            "cwd": { "type": "string" },
            "timeout_ms": { "type": "integer", "minimum": 1 },
            "output": {
                "enum": ["files", "patch"],
                "description": "patch: files stay as they are, `/output/*.patch` is applied",
            },
        });
        let summary = "Runs a program in a sandbox without network; no shells";
        arguments::acting("shell.run", summary, properties, &["command"])
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let line = command_line(params)?;
        let desk = &*self.0;
        let (view, layer) = {
            let inside = desk.look();
            (inside.staging.view(), inside.staging.layer())
        };
        let hidden = desk.hidden(&view)?;
        let (layers, scratch) = ([layer.path().to_owned()], desk.scratch());
        let sight = Sight { layers: &layers, hidden: &hidden, scratch: &scratch };
        let patch = params.value().get("output").and_then(Value::as_str) == Some("patch");
        let ran = if patch {
            let read = |path: &ProjectPath| original(desk, &view, path);
            let originals = Originals { blobs: &view.blobs, read: &read };
            desk.workshop.command_for_patches(&sight, &line, &originals, Arc::new(()))
        } else {
            let below = |path: &ProjectPath| at_or_below(&view, path);
            let skip = view.ignoring();
            let taking = Taking { blobs: &view.blobs, files: &below, skip: &skip };
            desk.workshop.command(&sight, &line, &taking, Arc::new(()))
        };
        let mut ran = ran.map_err(|error| failed(&error))?;
        let left = std::mem::replace(&mut ran.left, Ok(Taken::default()));
        let left = left.map_err(|error| failed(&error));
        let step = left.and_then(|left| desk.take_all(clerk, &left).map(|step| (step, left)));
        let (step, left) = step.map_err(|why| not_taken(&ran, &why))?;
        let mut told = answer(&ran);
        if let Value::Object(members) = &mut told {
            let names = left.produced.iter().take(NAMED).map(|it| it.path().to_string());
            let names: Vec<String> = names.collect();
            if let Some(step) = step {
                members.insert("step".to_owned(), step.into());
                members.insert("changed".to_owned(), json!(names));
            }
        }
        Ok(told)
    }
}

impl Desk {
    /// Takes everything that a command left, if the rules let every file of it be written.
    fn take_all(&self, clerk: &dyn Clerk, left: &Taken) -> Result<Option<u64>, ToolError> {
        if left.produced.is_empty() && left.refused.is_empty() {
            return Ok(None);
        }
        if let Some(refused) = left.refused.first() {
            let (name, why) = (&refused.name, &refused.why);
            return Err(ToolError(format!("`{name}`: {why}")));
        }
        for produced in &left.produced {
            let tool = match produced {
                Produced::File(..) => "fs.write",
                Produced::Nothing(_) => "fs.delete",
            };
            let path = produced.path();
            match self.may(tool, path) {
                May::Yes => {}
                May::Ask => {
                    return Err(ToolError(format!(
                        "a person has to agree to a change of `{path}`; change it with `{tool}`, which asks"
                    )));
                }
                May::No => {
                    return Err(ToolError(format!("the policy does not let `{path}` be changed")));
                }
            }
        }
        Ok(self.take(clerk, &left.produced)?.map(|step| step.number))
    }
}

/// Says how it ended, too: a limit that it ran into is often why.
fn not_taken(ran: &CommandRun, why: &ToolError) -> ToolError {
    let (end, why) = (&ran.end, &why.0);
    ToolError(format!("the command {end}, and nothing that it left is taken: {why}"))
}

/// A file as a command saw it: what must not be read was not there for it.
fn original(desk: &Desk, view: &View, path: &ProjectPath) -> io::Result<Option<Current>> {
    let executable = match view.look(path).map_err(io::Error::other)? {
        Some(Found::File { executable, .. }) if desk.may_read(path) => executable,
        Some(Found::File { .. } | Found::Directory | Found::Link | Found::Special) | None => {
            return Ok(None);
        }
    };
    let bytes = view.read(path, LARGEST).map_err(io::Error::other)?;
    Ok(Some((bytes, executable)))
}

/// Every file of a view at a path or below it.
fn at_or_below(view: &View, path: &ProjectPath) -> Vec<ProjectPath> {
    match view.look(path) {
        Ok(Some(Found::File { .. })) => vec![path.clone()],
        Ok(Some(Found::Directory)) => {
            // What cannot be looked at stays where it is: nothing of it is taken away.
            let files = view.all_files().map(|walked| walked.files).unwrap_or_default();
            files.into_iter().filter(|file| file.starts_with(path)).collect()
        }
        // A new file replaces nothing, and is no reason to look through the project.
        Ok(Some(Found::Link | Found::Special) | None) | Err(_) => Vec::new(),
    }
}

fn command_line(params: &Json) -> Result<CommandLine, ToolError> {
    let args = params.value().get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let args: Vec<String> = args.collect();
    let cwd = arguments::directory_named(params, "cwd")?;
    let timeout = params.value().get("timeout_ms").and_then(Value::as_u64).map(Span::from_ms);
    let line = CommandLine::new(text(params, "command")?, &args, cwd, timeout);
    line.map_err(|error| failed(&error))
}

fn answer(ran: &CommandRun) -> Value {
    let code = match ran.end {
        End::Exited(code) => Some(code),
        End::Signalled(_) | End::Limit(_) | End::Stopped => None,
    };
    let reached: Vec<String> = ran.reached.iter().map(ToString::to_string).collect();
    let mut told = json!({
        "end": ran.end.to_string(),
        "code": code,
        "stdout": ran.stdout.text,
        "stderr": ran.stderr.text,
    });
    if let (Value::Object(members), false) = (&mut told, reached.is_empty()) {
        members.insert("limits".to_owned(), json!(reached));
    }
    told
}
