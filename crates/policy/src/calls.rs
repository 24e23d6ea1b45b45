//! Which arguments of a call are paths and contents, so that rules see every file it touches.
//!
//! A tool declares its [`Shape`]; the kernel reads a call's arguments by it. Nothing is guessed from
//! an argument's name, and an argument that is declared a path and is none makes the call refused.

use fluffy_base::{Excerpt, Json, PathError, ProjectPath};
use serde_json::Value;

use crate::facts::{Isolation, Subject};

/// How much of an argument's name an error repeats.
const SHOWN: usize = 60;

/// What the arguments of a tool mean to rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Arguments that name a file or directory, or a list of them.
    pub paths: &'static [&'static str],
    /// Whether a call that leaves its path out acts on the whole project.
    pub root_by_default: bool,
    /// The argument whose text would be written to a file.
    pub content: Option<&'static str>,
    /// The arguments with the program to run and with its arguments.
    pub command: Option<(&'static str, &'static str)>,
    /// Whether it changes the files that it names.
    pub changes: bool,
    /// Where it runs.
    pub isolation: Isolation,
    /// What running it can do to the world, one of [`SIDE_EFFECTS`]; of skills and plugins.
    pub side_effect: Option<&'static str>,
}

/// What a skill can do to the world, as policies and proposals write it.
pub const SIDE_EFFECTS: [&str; 6] =
    ["READ_ONLY", "FILE_WRITE", "NETWORK", "SECRET_READ", "MONEY", "MESSAGING"];

/// What a person is asked about every time, whatever a policy says.
pub(crate) const ALWAYS_ASKED: [&str; 2] = ["MONEY", "MESSAGING"];

/// Why the paths of a call cannot be known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// An argument that names no file of the project.
    #[error("argument `{argument}`: {source}")]
    Path {
        /// The argument.
        argument: String,
        /// What is wrong with it.
        source: PathError,
    },
    /// An argument that rules look at and cannot read.
    #[error("argument `{argument}` must be {expected}")]
    Kind {
        /// The argument.
        argument: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A command line that cannot be run as it is.
    #[error("the command cannot be run: {0}")]
    Command(String),
    /// An argument that should be a path and is not even a text.
    #[error("argument `{argument}` must be a path, written as a text")]
    NotText {
        /// The argument.
        argument: String,
    },
}

impl Shape {
    /// A tool that touches no file and runs in the kernel.
    pub const PLAIN: Self = Self {
        paths: &[],
        root_by_default: false,
        content: None,
        command: None,
        changes: false,
        isolation: Isolation::Kernel,
        side_effect: None,
    };

    /// What a call with these parameters acts on.
    pub fn subject(&self, params: &Json) -> Result<Subject, CallError> {
        let (isolation, changes) = (self.isolation, self.changes);
        let side_effect = self.side_effect;
        let mut subject = Subject { isolation, changes, side_effect, ..Subject::default() };
        let mut named = false;
        for argument in self.paths {
            match params.value().get(argument) {
                None => {}
                Some(Value::Array(items)) => {
                    named = true;
                    items.iter().try_for_each(|item| subject.add(argument, item))?;
                }
                Some(item) => {
                    named = true;
                    subject.add(argument, item)?;
                }
            }
        }
        subject.root |= self.root_by_default && !named;
        subject.paths.sort_unstable();
        subject.paths.dedup();
        subject.file_bytes = self.file_bytes(params)?;
        subject.command = self.command_of(params)?;
        Ok(subject)
    }

    fn file_bytes(&self, params: &Json) -> Result<Option<u64>, CallError> {
        let Some(argument) = self.content else { return Ok(None) };
        match params.value().get(argument) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.len() as u64)),
            Some(_) => Err(CallError::Kind { argument, expected: "a text" }),
        }
    }

    /// The program with its arguments. Nothing where there is no program; whatever else cannot be
    /// read is refused, since a rule against a command would not see it.
    fn command_of(&self, params: &Json) -> Result<Option<Vec<String>>, CallError> {
        let Some((program, arguments)) = self.command else { return Ok(None) };
        let Some(name) = params.value().get(program) else { return Ok(None) };
        let no_text = CallError::Kind { argument: program, expected: "a text" };
        let mut words = vec![name.as_str().ok_or(no_text)?.to_owned()];
        let no_list = || CallError::Kind { argument: arguments, expected: "a list of texts" };
        if let Some(list) = params.value().get(arguments) {
            for word in list.as_array().ok_or_else(no_list)? {
                words.push(word.as_str().ok_or_else(no_list)?.to_owned());
            }
        }
        Ok(Some(words))
    }
}

impl Subject {
    fn add(&mut self, argument: &str, value: &Value) -> Result<(), CallError> {
        let argument = || Excerpt::new(argument, SHOWN).to_string();
        let Some(text) = value.as_str() else {
            return Err(CallError::NotText { argument: argument() });
        };
        match ProjectPath::parse(text) {
            Ok(path) => self.paths.push(path),
            Err(PathError::Root) => self.root = true,
            Err(source) => return Err(CallError::Path { argument: argument(), source }),
        }
        Ok(())
    }
}

/// The one name of a call that has two. Requests and rules mean the same call by either.
pub fn canonical_call(name: &str) -> &str {
    match name {
        "shell.exec" => "shell.run",
        other => other,
    }
}

/// The shape of a tool of ours, by name; of plugins the registry knows it.
pub fn shape_of(syscall: &str) -> Option<&'static Shape> {
    let syscall = canonical_call(syscall);
    CALLS.iter().find(|(name, _)| *name == syscall).map(|(_, shape)| shape)
}

/// The names of our tools.
pub fn known_calls() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(name, _)| *name)
}

/// The tag of our own tools for files, searches, git and tests.
pub const CORE_PLUGIN: &str = "core_plugin";
/// The tag of those of them that change files.
pub const TRUSTED_WRITE: &str = "trusted_write";
/// The tag of every tool of a plugin that a person installed.
pub const THIRD_PARTY: &str = "third_party";

/// The groups of calls that are built-in plugins.
pub const CORE_PLUGINS: [&str; 4] = ["fs", "search", "git", "test"];

/// The tags of one of our own tools, by its name: nothing that anybody says gives them to another.
pub fn core_tags(syscall: &str) -> &'static [&'static str] {
    let group = syscall.split_once('.').map_or("", |(group, _)| group);
    match shape_of(syscall) {
        Some(shape) if CORE_PLUGINS.contains(&group) => {
            if shape.changes {
                &[CORE_PLUGIN, TRUSTED_WRITE]
            } else {
                &[CORE_PLUGIN]
            }
        }
        Some(_) | None => &[],
    }
}

const READ: Shape = Shape { paths: &["path"], ..Shape::PLAIN };
const READ_TREE: Shape = Shape { root_by_default: true, ..READ };
const CHANGE: Shape = Shape { changes: true, isolation: Isolation::Sandbox, ..READ };
const WRITE: Shape = Shape { content: Some("content"), ..CHANGE };
const EDIT: Shape = Shape { content: Some("new"), ..CHANGE };
const RUN: Shape = Shape { isolation: Isolation::Sandbox, ..Shape::PLAIN };
const COMMAND: Shape =
    Shape { paths: &["cwd"], root_by_default: true, command: Some(("command", "args")), ..RUN };
const INSTALL: Shape = Shape { paths: &["cwd"], ..RUN };
const RUN_TREE: Shape = Shape { isolation: Isolation::Sandbox, ..READ_TREE };
const NAME_PATHS: Shape = Shape { paths: &["paths"], ..Shape::PLAIN };

/// Every tool of ours, in the order in which they are told.
static CALLS: [(&str, Shape); 35] = [
    ("echo", Shape::PLAIN),
    ("add", Shape::PLAIN),
    ("fs.read", READ),
    ("fs.list", READ_TREE),
    ("fs.exists", READ),
    ("search.grep", READ_TREE),
    ("search.glob", READ_TREE),
    ("fs.write", WRITE),
    ("fs.edit", EDIT),
    ("fs.delete", CHANGE),
    ("test.run", RUN),
    ("shell.run", COMMAND),
    ("deps.install", INSTALL),
    ("deps.resolve", INSTALL),
    ("git.status", RUN),
    ("git.diff", RUN_TREE),
    ("git.log", RUN),
    ("git.commit", RUN),
    ("plan.complete", Shape::PLAIN),
    ("tests.complete", Shape::PLAIN),
    ("code.complete", Shape::PLAIN),
    ("workflow.request_exemption", NAME_PATHS),
    ("task.complete", Shape::PLAIN),
    ("policy.update", Shape::PLAIN),
    ("forge.propose", Shape::PLAIN),
    ("forge.build", Shape::PLAIN),
    ("forge.verify", Shape::PLAIN),
    ("forge.research", Shape::PLAIN),
    ("forge.retry", Shape::PLAIN),
    ("forge.promote", Shape::PLAIN),
    ("forge.revoke", Shape::PLAIN),
    ("plugin.install", Shape::PLAIN),
    ("plugin.remove", Shape::PLAIN),
    ("plugin.enable", Shape::PLAIN),
    ("plugin.disable", Shape::PLAIN),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subject(tool: &str, params: Value) -> Result<Subject, CallError> {
        shape_of(tool).unwrap().subject(&Json::new(params).unwrap())
    }

    fn paths(tool: &str, params: Value) -> Vec<String> {
        let subject = subject(tool, params).unwrap();
        subject.paths.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_call_of_two_names_is_one_call() {
        assert_eq!(canonical_call("shell.exec"), "shell.run");
        assert_eq!(shape_of("shell.exec"), shape_of("shell.run"));
        for name in known_calls() {
            assert_eq!(canonical_call(name), name);
        }
    }

    #[test]
    fn every_spelling_of_a_path_is_one_path() {
        for text in [".env", "./.env", "a/../.env", ".//.env", "a/./../.env", ".env/"] {
            assert_eq!(paths("fs.read", json!({"path": text})), [".env"], "{text}");
        }
    }

    #[test]
    fn a_path_that_is_no_text_or_leads_out_refuses_the_call() {
        for value in
            [json!(1), json!(null), json!({"a": 1}), json!([["a"]]), json!([1]), json!(true)]
        {
            assert!(subject("fs.read", json!({"path": value})).is_err(), "{value}");
        }
        for text in ["/etc/passwd", "../x", "a/../../x", "", "a\\b", "~/x", "C:/x", "a\u{0}b"] {
            let error = subject("fs.read", json!({"path": text})).unwrap_err().to_string();
            assert!(error.starts_with("argument `path`: path "), "{error}");
        }
    }

    #[test]
    fn a_list_names_each_of_its_paths_once() {
        let given = json!({"category": "x", "paths": ["b", "./a", "a"], "reason": ""});
        assert_eq!(paths("workflow.request_exemption", given), ["a", "b"]);
    }

    #[test]
    fn the_root_is_told_apart_from_no_path() {
        assert!(subject("search.grep", json!({"pattern": "x"})).unwrap().root);
        assert!(subject("fs.list", json!({"path": "."})).unwrap().root);
        assert!(!subject("search.grep", json!({"pattern": "x", "path": "src"})).unwrap().root);
        assert!(!subject("git.status", json!({})).unwrap().root);
    }

    #[test]
    fn what_a_rule_could_not_read_refuses_the_call() {
        for (tool, params) in [
            ("fs.write", json!({"path": "a", "content": ["x"]})),
            ("fs.write", json!({"path": "a", "content": null})),
            ("fs.edit", json!({"path": "a", "old": "x", "new": 1})),
            ("shell.run", json!({"command": ["rm"], "args": []})),
            ("shell.run", json!({"command": "rm", "args": "-rf"})),
            ("shell.run", json!({"command": "rm", "args": ["-rf", 1]})),
        ] {
            let error = subject(tool, params.clone()).unwrap_err().to_string();
            assert!(error.contains("` must be a "), "{tool} {params}: {error}");
        }
        let run = subject("shell.run", json!({"command": "rm", "args": ["-rf"]})).unwrap();
        assert_eq!(run.command.unwrap(), ["rm", "-rf"]);
        assert_eq!(subject("shell.run", json!({"args": ["rm"]})).unwrap().command, None);
    }

    #[test]
    fn the_bytes_to_be_written_are_counted() {
        let given = json!({"path": "a", "content": "äb"});
        assert_eq!(subject("fs.write", given).unwrap().file_bytes, Some(3));
        assert_eq!(subject("fs.read", json!({"path": "a"})).unwrap().file_bytes, None);
    }
}
