//! A plugin that is called: loaded at its first call, spoken with, and disabled when it does not speak as agreed.
//!
//! **Invariant.** It is shown the bytes that were hashed in this very load, from a directory that nobody else was given.
//!
//! **Invariant.** What it sees of the project is looked at before each call: where the rules or the files make it something
//! else than when it was loaded, it is loaded anew.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fluffy_base::{ByteSize, Excerpt, Fault, Json, Message, ProjectPath, Span};
use fluffy_sandbox::Limits;
use serde_json::{Value, json};

use super::files::{Lasting, OwnDir};
use super::life::tell;
use super::protocol::{self, MAX_FRAME};
use super::store::Store;
use super::{Disabled, Installed, Manifest, PluginOptions, PluginRuntime, Stage, ToolDefinition};
use crate::guest::GuestFailure;
use crate::kernel::causes;
use crate::lab::{Kept, hidden_in};
use crate::{Clerk, Folders, Journal, LabError, May, Talk, ToolError, Tree, WorkshopError};

/// How long a plugin may take to start and say who it is.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Where the files of running plugins lie.
pub(super) const RUN: &str = "run";

/// Who disables plugins that do not speak as agreed.
const KERNEL: &str = "kernel";

/// How much a plugin may use.
const LIMITS: Limits = Limits {
    memory: ByteSize::from_bytes(512 << 20),
    cpu: 1_000,
    processes: 64,
    duration: Some(Span::from_ms(300_000)),
    captured: ByteSize::from_bytes(256 << 10),
    disk: ByteSize::from_bytes(64 << 20),
    files: 10_000,
    open_files: 256,
};

/// An installed plugin whose tools are registered.
pub(super) struct Plugin {
    options: Arc<PluginOptions>,
    installed: Installed,
    manifest: Manifest,
    /// Held while it is spoken with: one call at a time.
    state: Mutex<State>,
}

enum State {
    /// It was not called yet, or was unloaded.
    Resting,
    /// It runs.
    Running(Box<Running>),
    /// It does not run any more in this session.
    Disabled(String),
}

/// A plugin's process.
struct Running {
    kept: Kept,
    /// Its files, as it sees them.
    _own: OwnDir,
    /// What it sees of the project.
    folders: Folders,
    calls: u64,
}

/// Why a plugin is not there to be called.
enum Unusable {
    /// Nothing is known against the plugin: it could not be started.
    NotStarted(String),
    /// It is not what was installed, or did not speak as agreed.
    Misbehaved(String, Option<Box<Running>>),
}

impl Plugin {
    pub(super) fn new(
        options: &Arc<PluginOptions>,
        installed: Installed,
        manifest: Manifest,
    ) -> Self {
        let state = Mutex::new(State::Resting);
        Self { options: Arc::clone(options), installed, manifest, state }
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Has it answer a call that was allowed.
    pub(super) fn call(
        &self,
        tool: &ToolDefinition,
        params: &Json,
        clerk: &dyn Clerk,
    ) -> Result<Value, ToolError> {
        let mut state = self.state();
        let mut running = match self.ready(&mut state, clerk) {
            Ok(running) => running,
            Err(Unusable::NotStarted(why)) => return Err(self.failed(&why)),
            Err(Unusable::Misbehaved(why, running)) => {
                return Err(self.disable(&mut state, running, &why, clerk));
            }
        };
        match running.exchange(tool, params.value(), clerk.session_mode()) {
            Ok(answered) => {
                *state = State::Running(running);
                answered.map_err(|fault| self.failed(&told(&fault)))
            }
            Err(why) => Err(self.disable(&mut state, Some(running), &why, clerk)),
        }
    }

    /// Ends its process in order, if it runs.
    pub(super) fn unload(&self, journal: &dyn Journal) {
        let mut state = self.state();
        // What was disabled stays so.
        if !matches!(*state, State::Running(_)) {
            return;
        }
        if let State::Running(running) = std::mem::replace(&mut *state, State::Resting) {
            self.end(*running, "the session ends", journal);
        }
    }

    fn end(&self, running: Running, why: &str, journal: &dyn Journal) {
        let ended = running.kept.end(journal);
        let told = vec![("why", why.to_owned()), ("end", ended.end)];
        // The plugin is gone whether or not that can be recorded.
        let _told = tell(journal, &self.manifest.name, Stage::Unloaded, told);
    }

    /// Its process, started where it is not there or sees what it may not see any more. The state is left resting.
    fn ready(&self, state: &mut State, clerk: &dyn Clerk) -> Result<Box<Running>, Unusable> {
        if let State::Disabled(why) = state {
            return Err(Unusable::NotStarted(format!("it is disabled: {why}")));
        }
        let folders = self.folders(clerk).map_err(Unusable::NotStarted)?;
        if let State::Running(running) = std::mem::replace(state, State::Resting) {
            if running.folders == folders {
                return Ok(running);
            }
            self.end(*running, "what it may see has changed", clerk);
        }
        self.load(folders, clerk).map(Box::new)
    }

    /// The folders that it sees now, without what the rules keep from the model.
    fn folders(&self, clerk: &dyn Clerk) -> Result<Folders, String> {
        let reads = &self.manifest.reads;
        if reads.is_empty() {
            return Ok(Folders::default());
        }
        let tree = Tree::open(self.options.lab.project()).map_err(|error| error.to_string())?;
        let tree = Arc::new(tree);
        if let Some(path) = reads.iter().find(|path| clerk.may("fs.list", path) == May::No) {
            return Err(format!("the rules keep `{path}` from being read"));
        }
        let is_there = |path: &&ProjectPath| matches!(tree.look(path), Ok(Some(_)));
        let inner = |path: &&ProjectPath| {
            !reads.iter().any(|outer| outer != *path && path.starts_with(outer))
        };
        let mut seen: Vec<_> = reads.iter().filter(is_there).filter(inner).cloned().collect();
        seen.sort_unstable();
        seen.dedup();
        let mut folders = Folders { seen, ..Folders::default() };
        folders.hidden = hidden_in(&tree, &folders, &self.scratch(), clerk)?;
        folders.hidden.sort_unstable();
        Ok(folders)
    }

    /// Starts its process from files that are what was installed, and hears who it is.
    fn load(&self, folders: Folders, clerk: &dyn Clerk) -> Result<Running, Unusable> {
        let (name, seen) = (&self.manifest.name, folders.clone());
        let unusable = |why: String| Unusable::Misbehaved(why, None);
        let package = Store::of(&self.options.dir).get(&self.installed);
        let package = package.map_err(|error| unusable(causes(&error)))?;
        let stopped = |error: &dyn std::error::Error| Unusable::NotStarted(causes(error));
        let own = OwnDir::new(&self.options.dir.join(RUN), name.as_str());
        let own = own.map_err(|error| stopped(&error))?;
        own.fill(package.files(), Lasting::Briefly).map_err(|error| stopped(&error))?;
        let talk = self.talk(folders, own.path()).map_err(Unusable::NotStarted)?;
        let kept = self.options.lab.keep(talk, clerk).map_err(|error| match error {
            LabError::Workshop(WorkshopError::Cancelled) => {
                Unusable::NotStarted("the task was cancelled".to_owned())
            }
            error => stopped(&error),
        })?;
        let told = vec![("sandbox", kept.sandbox().to_owned())];
        tell(clerk, name, Stage::Loaded, told).map_err(|error| stopped(&error))?;
        let mut running = Running { kept, _own: own, folders: seen, calls: 0 };
        match self.greet(&mut running) {
            Ok(api) => {
                let told =
                    vec![("sandbox", running.kept.sandbox().to_owned()), ("api", api.to_string())];
                tell(clerk, name, Stage::Active, told).map_err(|error| stopped(&error))?;
                Ok(running)
            }
            Err(why) => Err(Unusable::Misbehaved(why, Some(Box::new(running)))),
        }
    }

    /// Hears who it is and tells it where it is; the version that both speak.
    fn greet(&self, running: &mut Running) -> Result<u32, String> {
        let heard = running.kept.hear(START_LIMIT);
        let heard = heard.map_err(|failure| speaking(failure, START_LIMIT, "its handshake"))?;
        let handshake = protocol::handshake(&heard, &self.manifest)?;
        let id = handshake.id;
        let answer = match &handshake.agreed {
            Ok(api) => protocol::welcome(id, *api, self.surroundings(running)),
            Err(fault) => Message::Response { id, outcome: Err(fault.clone()) },
        };
        let said = running.kept.say(&protocol::frame(&answer)?, START_LIMIT);
        // One that is refused need not listen.
        match handshake.agreed {
            Ok(api) => match said {
                Ok(()) => Ok(api),
                Err(failure) => Err(speaking(failure, START_LIMIT, "the answer to its handshake")),
            },
            Err(fault) => Err(fault.message),
        }
    }

    /// What a plugin is told of where it is.
    fn surroundings(&self, running: &Running) -> Value {
        let Manifest { name, reads, required_capabilities, hosts, .. } = &self.manifest;
        let project = (!reads.is_empty()).then(|| self.options.lab.project().to_string_lossy());
        json!({
            "plugin_name": name,
            "sandbox_id": running.kept.sandbox(),
            "project": project,
            "reads": reads,
            "hosts": hosts,
            "capabilities": required_capabilities,
        })
    }

    fn talk(&self, folders: Folders, own: &std::path::Path) -> Result<Talk, String> {
        let runtime = self.manifest.runtime;
        let entry = own.join(self.manifest.entry.as_str());
        let words: &[&str] = match runtime {
            PluginRuntime::Native | PluginRuntime::Node => &[],
            PluginRuntime::Deno => &["run", "--quiet", "--no-remote", "--no-lock", "--allow-all"],
            // Its own directory is where it imports from, and nothing of the user's.
            PluginRuntime::Python => &["-E", "-s", "-B"],
        };
        let (program, entry): (PathBuf, Option<OsString>) = match runtime {
            PluginRuntime::Native => (entry, None),
            PluginRuntime::Node | PluginRuntime::Deno | PluginRuntime::Python => {
                let program = self.options.interpreters.program(runtime);
                let missing = || format!("there is no `{}` on this machine", runtime.name());
                (program.cloned().ok_or_else(missing)?, Some(entry.into()))
            }
        };
        let words = words.iter().map(OsString::from);
        let env = [("TZ", "UTC0"), ("DENO_DIR", "/tmp/.deno"), ("LC_ALL", "C.UTF-8")];
        Ok(Talk {
            program,
            args: words.chain(entry).collect(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            folders,
            shown: vec![own.to_owned()],
            scratch: self.scratch(),
            hosts: self.manifest.hosts.clone(),
            limits: LIMITS,
            frame_bytes: MAX_FRAME,
        })
    }

    /// Ends a plugin that is not what it should be, and says so in the ledger, until a person enables it again.
    fn disable(
        &self,
        state: &mut State,
        running: Option<Box<Running>>,
        why: &str,
        clerk: &dyn Clerk,
    ) -> ToolError {
        let ended = running.map(|running| running.kept.end(clerk));
        if self.options.lab.is_closed() {
            // Whoever ended all jobs has ended this one.
            return self.failed("the task was cancelled");
        }
        let printed = ended.map(|ended| ended.printed).filter(|printed| !printed.is_empty());
        let printed = printed.map_or_else(String::new, |text| format!("; it printed: {text}"));
        let why = Excerpt::new(&format!("{why}{printed}"), 1_500).to_string();
        *state = State::Disabled(why.clone());
        let name = &self.manifest.name;
        let disabled = Disabled { why: why.clone(), by: KERNEL.to_owned() };
        let recorded = self.options.roll().and_then(|roll| {
            let told = vec![("why", why.clone()), ("by", KERNEL.to_owned())];
            roll.set(name, Some(disabled)).record(clerk, (name, "disabled"), told)
        });
        let recorded = match recorded {
            Ok(_) => String::new(),
            Err(error) => format!(" (that could not be recorded: {})", causes(&error)),
        };
        let fix = "the user can look into it and enable it again: fluffy plugin enable";
        self.failed(&format!("it is disabled now, because {why}{recorded}; {fix} {name}"))
    }

    fn failed(&self, why: &str) -> ToolError {
        ToolError(format!("plugin {}: {why}", self.manifest.name))
    }

    fn scratch(&self) -> PathBuf {
        self.options.dir.join("scratch")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked had taken the process out: it rests, which is a state like any other.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Has a call answered. An error is the plugin's failure to speak, and no answer.
    fn exchange(
        &mut self,
        tool: &ToolDefinition,
        arguments: &Value,
        mode: Option<&str>,
    ) -> Result<Result<Value, Fault>, String> {
        self.calls = self.calls.saturating_add(1);
        let id = self.calls;
        let frame = match protocol::frame(&protocol::call(id, &tool.name, arguments, mode)) {
            Ok(frame) => frame,
            // What is too long for it is the caller's mistake and not its own.
            Err(why) => {
                let code = fluffy_base::FaultCode::TooLarge;
                return Ok(Err(Fault::new(code, &format!("the arguments are too long: {why}"))));
            }
        };
        let limit = Duration::from_millis(tool.timeout_ms);
        let heard = self.kept.exchange(&frame, limit);
        let what = format!("its answer to `{}`", tool.name);
        let heard = heard.map_err(|failure| speaking(failure, limit, &what))?;
        protocol::answer(&heard, id)
    }
}

/// What a plugin says about a call that failed.
fn told(fault: &Fault) -> String {
    fault.message.clone()
}

/// How speaking with it failed, in words.
fn speaking(failure: GuestFailure, limit: Duration, what: &str) -> String {
    match failure {
        GuestFailure::Late => format!("{what} did not come within {} ms", limit.as_millis()),
        GuestFailure::Died => format!("it ended before {what}"),
        GuestFailure::Garbled => {
            format!("{what} was no message, too long a one, or more than was asked for")
        }
    }
}
