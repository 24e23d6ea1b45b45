//! Write plugins for fluffy in Rust. One file; it needs `serde_json`.
//!
//! ```no_run
//! # use fluffy_plugin::{Context, Plugin, ToolError};
//! # use serde_json::{json, Value};
//! fn find(_arguments: &Value, context: &Context) -> Result<Value, ToolError> {
//!     Ok(json!({ "found": context.list_dir("src")? }))
//! }
//!
//! fn main() -> std::io::Result<()> {
//!     Plugin::new("todo", "1.0.0").tool("todo.find", find).run()
//! }
//! ```
//!
//! A plugin runs in a sandbox of its own. What it sees of the project are the folders that its manifest lists; what it
//! writes goes to a directory that nobody else sees; it has no network but the hosts of its manifest. Print to standard
//! error only: standard output is the kernel's.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{json, Value};

/// The version of what is said between the kernel and plugins.
pub const API_VERSION: u32 = 1;

const MAX_FRAME: usize = 4 << 20;
const OUTPUT: &str = "/tmp/output";

/// What a tool could not do, in words for the model.
#[derive(Debug)]
pub struct ToolError(String);

impl ToolError {
    /// An error with these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolError {}

/// What became of a program.
#[derive(Debug)]
pub struct RunResult {
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
}

/// What a tool can do. All of it is bounded by the plugin's sandbox.
#[derive(Debug)]
pub struct Context {
    /// The plugin's name.
    pub plugin_name: String,
    /// The sandbox's name in records.
    pub sandbox_id: String,
    /// `strict`, `explore` or `debug`, where a session calls.
    pub session_mode: Option<String>,
    /// The folders of the project that the manifest lists.
    pub reads: Vec<String>,
    /// The calls whose rights the manifest asks for.
    pub capabilities: Vec<String>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    project: Option<PathBuf>,
}

impl Context {
    /// The text of a file of the project, or of one that this plugin wrote.
    pub fn read_file(&self, path: &str) -> Result<String, ToolError> {
        let written = Path::new(OUTPUT).join(plain(path)?);
        let place = if written.exists() { written } else { self.of_project(path)? };
        std::fs::read_to_string(place)
            .map_err(|error| ToolError::new(format!("`{path}` cannot be read: {error}")))
    }

    /// Writes into the plugin's own output directory: the project is changed by the model's own calls alone.
    pub fn write_file(&self, path: &str, content: &str) -> Result<(), ToolError> {
        let place = Path::new(OUTPUT).join(plain(path)?);
        let failed = |error| ToolError::new(format!("`{path}` cannot be written: {error}"));
        if let Some(above) = place.parent() {
            std::fs::create_dir_all(above).map_err(failed)?;
        }
        std::fs::write(place, content).map_err(failed)
    }

    /// The names in a folder of the project, in order; those of folders end with `/`.
    pub fn list_dir(&self, path: &str) -> Result<Vec<String>, ToolError> {
        let failed = |error| ToolError::new(format!("`{path}` cannot be listed: {error}"));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.of_project(path)?).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let mut name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().map_err(failed)?.is_dir() {
                name.push('/');
            }
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    /// Whether there is a file or folder in what this plugin sees.
    pub fn file_exists(&self, path: &str) -> Result<bool, ToolError> {
        let written = Path::new(OUTPUT).join(plain(path)?);
        Ok(written.exists() || (self.project.is_some() && self.of_project(path)?.exists()))
    }

    /// Runs a program in the plugin's sandbox: a list of words, never a line for a shell. Needs `shell.run`.
    pub fn run(&self, command: &[&str]) -> Result<RunResult, ToolError> {
        if !self.capabilities.iter().any(|it| it == "shell.run") {
            let words = "this plugin runs no programs: its manifest does not ask for `shell.run`";
            return Err(ToolError::new(words));
        }
        let (program, words) =
            command.split_first().ok_or_else(|| ToolError::new("a command is a list of words"))?;
        let done = Command::new(program)
            .args(words)
            .current_dir("/tmp")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| ToolError::new(format!("`{program}` did not run: {error}")))?;
        Ok(RunResult {
            code: done.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    }

    fn of_project(&self, path: &str) -> Result<PathBuf, ToolError> {
        let none = "this plugin sees nothing of the project: its manifest lists no `reads`";
        let project = self.project.as_ref().ok_or_else(|| ToolError::new(none))?;
        Ok(project.join(plain(path)?))
    }

    fn of(welcome: &Value, name: &str, mode: Option<&str>) -> Self {
        let list = |key: &str| {
            let items = welcome[key].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            plugin_name: name.to_owned(),
            sandbox_id: welcome["sandbox_id"].as_str().unwrap_or_default().to_owned(),
            session_mode: mode.map(str::to_owned),
            reads: list("reads"),
            capabilities: list("capabilities"),
            env: std::env::vars().collect(),
            project: welcome["project"].as_str().map(PathBuf::from),
        }
    }
}

type Handler = Box<dyn Fn(&Value, &Context) -> Result<Value, ToolError>>;

/// A plugin with its tools.
pub struct Plugin {
    name: String,
    version: String,
    handlers: BTreeMap<String, Handler>,
}

impl Plugin {
    /// A plugin of this name and version, as in its manifest.
    pub fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), handlers: BTreeMap::new() }
    }

    /// Gives a tool of the manifest its handler.
    pub fn tool(
        mut self,
        name: &str,
        handler: impl Fn(&Value, &Context) -> Result<Value, ToolError> + 'static,
    ) -> Self {
        self.handlers.insert(name.to_owned(), Box::new(handler));
        self
    }

    /// Speaks with the kernel until it hangs up.
    pub fn run(self) -> io::Result<()> {
        let (mut source, mut sink) = (io::stdin().lock(), io::stdout().lock());
        let hello = json!({
            "plugin_name": self.name, "plugin_version": self.version, "syscall_api_version": API_VERSION,
        });
        let request = json!({ "type": "request", "id": 1, "method": "handshake", "params": hello });
        send(&mut sink, &request)?;
        let Some(answer) = receive(&mut source)? else { return Ok(()) };
        if let Some(message) = answer["error"]["message"].as_str() {
            return Err(io::Error::other(message.to_owned()));
        }
        while let Some(message) = receive(&mut source)? {
            send(&mut sink, &self.answer(&message, &answer["result"]))?;
        }
        Ok(())
    }

    fn answer(&self, message: &Value, welcome: &Value) -> Value {
        let (id, params) = (&message["id"], &message["params"]);
        let handler = params["tool"].as_str().and_then(|tool| self.handlers.get(tool));
        let Some(handler) = handler.filter(|_| message["method"] == "tool.call") else {
            let error = fault("unknown_method", "this plugin has no such tool");
            return json!({ "type": "response", "id": id, "error": error });
        };
        let context = Context::of(welcome, &self.name, params["session_mode"].as_str());
        match handler(&params["arguments"], &context) {
            Ok(result) => json!({ "type": "response", "id": id, "result": result }),
            Err(error) => {
                json!({ "type": "response", "id": id, "error": fault("denied", &error.0) })
            }
        }
    }
}

fn fault(code: &str, message: &str) -> Value {
    let message: String = message.chars().take(2_000).collect();
    json!({ "code": code, "message": message, "retryable": false })
}

fn plain(path: &str) -> Result<PathBuf, ToolError> {
    let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    if leads_out || path.contains('\0') {
        return Err(ToolError::new(format!("`{path}` leads out of the project")));
    }
    Ok(path.split('/').filter(|part| !part.is_empty() && *part != ".").collect())
}

fn receive(source: &mut impl Read) -> io::Result<Option<Value>> {
    let mut size = [0; 4];
    match source.read_exact(&mut size) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut payload = vec![0; u32::from_be_bytes(size) as usize];
    source.read_exact(&mut payload)?;
    Ok(Some(serde_json::from_slice(&payload)?))
}

fn send(sink: &mut impl Write, message: &Value) -> io::Result<()> {
    let mut payload = serde_json::to_vec(message)?;
    if payload.len() > MAX_FRAME {
        let error = fault("too_large", &format!("the result has more than {MAX_FRAME} bytes"));
        let small = json!({ "type": "response", "id": message["id"], "error": error });
        payload = serde_json::to_vec(&small)?;
    }
    sink.write_all(&(payload.len() as u32).to_be_bytes())?;
    sink.write_all(&payload)?;
    sink.flush()
}
