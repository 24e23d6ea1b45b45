//! `shell.run`: a program with its arguments, in a sandbox; what it leaves is judged file by file.
//!
//! **Invariant.** All that a command left is taken, or nothing: half of a change is another change.
//!
//! **Invariant.** What a command printed and how it ended is answered, whatever becomes of the files that it left.

use std::io;
use std::sync::Arc;

use fluffy_base::{Excerpt, Json, ProjectPath, Span};
use fluffy_ledger::EventType;
use fluffy_sandbox::{End, Limit};
use serde_json::{Map, Value, json};

use super::Views as _;
use super::arguments::{self, text};
use crate::files::{Found, View};
use crate::session::{Desk, failed, hosts_of};
use crate::workshop::{
    CommandLine, CommandRun, CommandScript, Current, LimitedJob, Originals, Produced, ProgramCall,
    Sight, Taken, Taking, parse_line, setting_hint,
};
use crate::{CalledPrograms, Clerk, May, Note, Tool, ToolError, ToolSpec};

/// How many files an answer names.
const NAMED: usize = 20;

/// Shells whose `-c` is read as a command line; the shell itself is not run.
const READ_AS_LINES: [&str; 7] =
    ["bash", "sh", "dash", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"];

/// How a shell is told that a command line follows.
const FLAGS_OF_LINES: [&str; 3] = ["-c", "-lc", "-cl"];

/// How much of one argument is repeated where programs are listed.
const QUOTED: usize = 200;

/// Folders that package managers fill.
const INSTALLED: [&str; 4] = [".tox", ".venv", "node_modules", "venv"];

/// What helps where packages were thrown away.
const PACKAGES_HINT: &str =
    "folders of packages are gone with the command: packages are installed with `deps.install`";

/// What helps where other ignored files were thrown away.
const IGNORED_HINT: &str = "what the project ignores or builds is gone with the command: do what needs it in the same \
                            command";

/// The largest file that a patch may change.
const LARGEST: u64 = 16 << 20;

/// Runs a program.
pub(crate) struct RunCommand(pub(crate) Arc<Desk>);

impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "command": {
                "type": "string",
                "description": "a program, or a whole command line: words, quotes, pipes, &&, ||, ;, \
                                redirections to files of the project, NAME=value, cd FOLDER && …",
            },
            "args": { "type": "array", "items": { "type": "string" } },
            "cwd": { "type": "string" },
            "timeout_ms": { "type": "integer", "minimum": 1 },
            "hosts": {
                "type": "array",
                "items": { "type": "string" },
                "description": "hosts to reach, such as `api.example.com`; others than the policy's are asked about",
            },
            "output": {
                "enum": ["files", "patch"],
                "description": "patch: files stay as they are, `/output/*.patch` is applied",
            },
        });
        let summary = "Runs a program, or programs joined as in a command line, in a sandbox, without network unless it asks for hosts; no shell";
        arguments::acting("shell.run", summary, properties, &["command"])
    }

    fn programs(&self, params: &Json) -> Result<Option<CalledPrograms>, String> {
        let Some(line) = line_text(params) else { return Ok(None) };
        let script = self.0.script(line, params).map_err(|error| error.0)?;
        let folders = script.cwd.clone().into_iter().collect();
        let commands = script.programs().map(ProgramCall::words).collect();
        // What is refused for its words is refused before anybody is asked.
        CommandLine::from_script(script, None).map_err(|error| failed(&error).0)?;
        Ok(Some(CalledPrograms { commands, folders }))
    }

    fn notes(&self, params: &Json) -> Vec<String> {
        let programs = self.programs(params).ok().flatten();
        let commands = programs.map(|programs| programs.commands).unwrap_or_default();
        commands.iter().map(|words| format!("runs {}", quoted(words))).collect()
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let desk = &*self.0;
        let line = desk.command_line(params)?;
        desk.record_programs(clerk, &line)?;
        let (view, layer) = {
            let inside = desk.look();
            (inside.staging.view(), inside.staging.layer())
        };
        let hidden = desk.hidden(&view)?;
        let (layers, scratch) = ([layer.path().to_owned()], desk.scratch());
        let sight = Sight { layers: &layers, hidden: &hidden, scratch: &scratch };
        let ran = if is_for_patches(params) {
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
        let mut told = answer(&ran);
        told.extend(desk.limit_hints(&line, &ran));
        told.extend(desk.take_or_tell(clerk, left));
        Ok(Value::Object(told))
    }
}

impl Desk {
    /// What to do about limits that a command reached.
    fn limit_hints(&self, line: &CommandLine, ran: &CommandRun) -> Option<(String, Value)> {
        let limits = self.workshop.job_limits(LimitedJob::Command);
        let own = line.timeout().filter(|own| limits.duration.is_none_or(|most| *own < most));
        let ended = match ran.end {
            End::Limit(limit) => Some(limit),
            End::Exited(_) | End::Signalled(_) | End::Stopped => None,
        };
        let reached = ended.iter().chain(ran.reached.iter().filter(|it| Some(**it) != ended));
        let hints = reached.filter_map(|limit| match (limit, own) {
            (Limit::Duration, Some(own)) => {
                let double = own.ms().saturating_mul(2);
                Some(format!("the call's `timeout_ms` is {}; {double} is likely enough", own.ms()))
            }
            (limit, _) => setting_hint(LimitedJob::Command, *limit, &limits),
        });
        let hints: Vec<String> = hints.collect();
        (!hints.is_empty()).then(|| ("limits_hint".to_owned(), json!(hints)))
    }

    /// Takes what a command left; what the model is told of its files, and why they are not taken where they are not.
    fn take_or_tell(
        &self,
        clerk: &dyn Clerk,
        left: Result<Taken, ToolError>,
    ) -> Map<String, Value> {
        let mut told = Map::new();
        let left = match left {
            Ok(left) => left,
            Err(why) => {
                told.insert("not_taken".to_owned(), json!({ "reason": why.0 }));
                return told;
            }
        };
        let changed = named(left.produced.iter().map(Produced::path));
        match self.take_all(clerk, &left) {
            Ok(Some(step)) => {
                told.insert("step".to_owned(), step.into());
                told.insert("changed".to_owned(), json!(changed));
            }
            Ok(None) => {}
            Err(why) => {
                let refused = left.refused.iter().map(|it| it.name.clone());
                let files: Vec<String> = changed.into_iter().chain(refused.take(NAMED)).collect();
                let not_taken = json!({ "reason": why.0, "files": files });
                told.insert("not_taken".to_owned(), not_taken);
            }
        }
        if !left.skipped.is_empty() {
            let packages = left.skipped.iter().any(|path| INSTALLED.contains(&path.file_name()));
            let hint = if packages { PACKAGES_HINT } else { IGNORED_HINT };
            told.insert("thrown_away".to_owned(), json!(named(left.skipped.iter())));
            told.insert("hint".to_owned(), hint.into());
        }
        told
    }

    /// Takes everything that a command left, if the rules let every file of it be written and a person agrees to those files
    /// that a person has to agree to.
    fn take_all(&self, clerk: &dyn Clerk, left: &Taken) -> Result<Option<u64>, ToolError> {
        if left.produced.is_empty() && left.refused.is_empty() {
            return Ok(None);
        }
        if let Some(refused) = left.refused.first() {
            let (name, why) = (&refused.name, &refused.why);
            return Err(ToolError(format!("`{name}`: {why}")));
        }
        let mut asked = Vec::new();
        for produced in &left.produced {
            let tool = match produced {
                Produced::File(..) => "fs.write",
                Produced::Nothing(_) => "fs.delete",
            };
            let path = produced.path();
            match self.may(tool, path) {
                May::Yes => {}
                May::Ask => asked.push(produced),
                May::No => {
                    return Err(ToolError(format!("the policy does not let `{path}` be changed")));
                }
            }
        }
        if !asked.is_empty() {
            // Nobody is asked about what could not be taken anyway.
            self.check_step(clerk, &left.produced)?;
        }
        for (number, produced) in asked.into_iter().enumerate() {
            self.ask_for_left(clerk, number + 1, produced)?;
        }
        Ok(self.take(clerk, &left.produced)?.map(|step| step.number))
    }
}

/// The first of these paths, as an answer names them.
fn named<'a>(paths: impl ExactSizeIterator<Item = &'a ProjectPath>) -> Vec<String> {
    let more = paths.len().saturating_sub(NAMED);
    let mut names: Vec<String> = paths.take(NAMED).map(ToString::to_string).collect();
    if more > 0 {
        names.push(format!("… and {more} more"));
    }
    names
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

impl Desk {
    /// What a call runs: a program with its arguments, or the programs of a command line.
    fn command_line(&self, params: &Json) -> Result<CommandLine, ToolError> {
        let timeout = params.value().get("timeout_ms").and_then(Value::as_u64).map(Span::from_ms);
        let line = match line_text(params) {
            Some(line) => CommandLine::from_script(self.script(line, params)?, timeout),
            None => {
                let cwd = arguments::directory_named(params, "cwd")?;
                CommandLine::new(text(params, "command")?, &args(params), cwd, timeout)
            }
        };
        let line = line.map_err(|error| failed(&error))?;
        let hosts = hosts_of(params).map_err(ToolError)?;
        if !hosts.is_empty() && is_for_patches(params) {
            let text =
                "a command that leaves patches reaches no hosts: leave `output` or `hosts` out";
            return Err(ToolError(text.to_owned()));
        }
        let line = line.with_hosts(hosts);
        for path in line.script().into_iter().flat_map(CommandScript::written) {
            if self.may("fs.write", path) == May::No {
                let text =
                    format!("the policy does not let `{path}` be written, so nothing was run");
                return Err(ToolError(text));
            }
        }
        Ok(line)
    }

    fn script(&self, line: &str, params: &Json) -> Result<CommandScript, ToolError> {
        let cwd = arguments::directory_named(params, "cwd")?;
        let script = parse_line(line, cwd.as_ref(), self.workshop.project());
        script.map_err(|error| failed(&error))
    }

    /// Records every program of a command line before the first one starts.
    fn record_programs(&self, clerk: &dyn Clerk, line: &CommandLine) -> Result<(), ToolError> {
        let programs = line.script().into_iter().flat_map(CommandScript::programs);
        for (number, program) in programs.enumerate() {
            let words = program.words();
            clerk.record(Note {
                event: EventType::CommandProgram,
                intent: format!("a command line starts {}", quoted(&words)),
                request_id: Some(clerk.request_id().to_owned()),
                workflow_state: None,
                metadata: vec![
                    ("number", (number + 1).to_string()),
                    ("words", json!(words).to_string()),
                ],
                content: None,
            })?;
        }
        Ok(())
    }
}

fn is_for_patches(params: &Json) -> bool {
    params.value().get("output").and_then(Value::as_str) == Some("patch")
}

/// The command line of a call, if it is one: all of `command`, or what a shell would be given.
fn line_text(params: &Json) -> Option<&str> {
    let command = params.value().get("command")?.as_str()?;
    match (command, args(params).len()) {
        (line, 0) if line.contains(is_of_lines) => Some(line),
        (shell, 2) if READ_AS_LINES.contains(&shell) => {
            let mut args = params.value().get("args")?.as_array()?.iter();
            let flag = args.next()?.as_str()?;
            FLAGS_OF_LINES.contains(&flag).then(|| args.next()?.as_str()).flatten()
        }
        _program => None,
    }
}

/// Whether a character does not stand in the name of a program, but in a command line.
fn is_of_lines(character: char) -> bool {
    character.is_whitespace() || "|&;<>$`\"'\\*?()!".contains(character)
}

fn args(params: &Json) -> Vec<String> {
    let args = params.value().get("args").and_then(Value::as_array);
    args.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A program with its arguments, as a person reads them.
fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let word = |word: &String| match word.chars().all(plain) && !word.is_empty() {
        true => word.clone(),
        false => format!("'{}'", Excerpt::new(word, QUOTED)),
    };
    let words: Vec<String> = words.iter().map(word).collect();
    format!("`{}`", words.join(" "))
}

fn answer(ran: &CommandRun) -> Map<String, Value> {
    let code = match ran.end {
        End::Exited(code) => Some(code),
        End::Signalled(_) | End::Limit(_) | End::Stopped => None,
    };
    let reached: Vec<String> = ran.reached.iter().map(ToString::to_string).collect();
    let told = [
        ("end", json!(ran.end.to_string())),
        ("code", json!(code)),
        ("stdout", json!(ran.stdout.text)),
        ("stderr", json!(ran.stderr.text)),
    ];
    let mut told: Map<String, Value> =
        told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if !reached.is_empty() {
        told.insert("limits".to_owned(), json!(reached));
    }
    told
}
