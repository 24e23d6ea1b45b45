//! Somebody without any right who works on a project in sandboxes of an engine.

use std::fmt::Debug;
use std::os::unix::fs::{chown, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fluffy_sandbox::EngineKind;
use fluffy_testkit::engines::{is_there, rootless, socket};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::NOBODY;
use crate::program::{Answer, typing};
use crate::task::lab::{Lab, Language, Run};

pub(super) struct Worker {
    pub(super) lab: Lab,
    pub(super) engine: EngineKind,
    /// Where it listens.
    pub(super) socket: PathBuf,
    /// Whether the kernel is to be in a container of its own.
    pub(super) contained: bool,
}

impl Worker {
    /// One for each engine that is there, and for one that has no right itself.
    pub(super) fn each() -> impl Iterator<Item = Self> {
        let there = EngineKind::ALL.into_iter().filter(|engine| is_there(*engine));
        let there = there.map(|engine| (engine, socket(engine)));
        let rootless = rootless().map(|socket| (EngineKind::Podman, socket));
        there.chain(rootless).map(|(engine, socket)| Self::new(engine, socket))
    }

    pub(super) fn new(engine: EngineKind, socket: PathBuf) -> Self {
        let lab = Lab::new(Language::JavaScript);
        let project = &lab.user.project;
        // A copy that they can reach; and root looks at their repository, too.
        let program = project.path("fluffy");
        let built = env!("CARGO_BIN_EXE_fluffy");
        std::fs::hard_link(built, &program)
            .or_else(|_| std::fs::copy(built, &program).map(drop))
            .unwrap();
        std::fs::create_dir(project.path("home")).unwrap();
        std::fs::write(project.path(".gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
        let worker = Self { lab, engine, socket, contained: false };
        for part in ["", "home", "state", "project"] {
            worker.own(part);
        }
        worker
    }

    /// Gives them something of theirs, with all that is in it.
    fn own(&self, part: &str) {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let top = self.lab.user.project.path(part);
        chown(&top, Some(NOBODY), Some(NOBODY)).unwrap();
        let mut pending = if part.is_empty() { Vec::new() } else { vec![top] };
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                lchown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                }
            }
        }
    }

    /// A command of theirs, as one that was made for whoever runs the tests.
    fn theirs(&self, command: &Command) -> Command {
        let project = &self.lab.user.project;
        let mut theirs = Command::new(project.path("fluffy"));
        theirs.args(command.get_args()).env_clear();
        theirs.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        theirs.current_dir(project.root()).stdin(Stdio::null());
        let host = format!("unix://{}", self.socket.display());
        theirs.env("HOME", project.path("home")).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        theirs.env("FLUFFY_SANDBOX_RUNTIME", self.engine.name());
        theirs.env("DOCKER_HOST", &host).env("CONTAINER_HOST", &host);
        if self.contained {
            theirs.env("FLUFFY_KERNEL_CONFINEMENT", "container");
        }
        if rustix::process::geteuid().is_root() {
            theirs.uid(NOBODY).gid(NOBODY);
        }
        theirs
    }

    /// The command that does the task with these turns.
    pub(super) fn task(&self, turns: &[Value]) -> Command {
        let command = self.theirs(&self.lab.command(&[], turns));
        // Its transcript is root's.
        std::fs::set_permissions(
            self.lab.user.project.path("transcript.jsonl"),
            std::os::unix::fs::PermissionsExt::from_mode(0o644),
        )
        .unwrap();
        command
    }

    pub(super) fn work(&self, turns: &[Value]) -> Run {
        Run::of(Answer::of(self.task(turns).output().unwrap()))
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        self.theirs(&self.lab.user.command(args))
    }

    pub(super) fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    /// The same at a terminal, at which this is typed.
    pub(super) fn typing(&self, args: &[&str], typed: &str) -> Answer {
        let command = self.command(args);
        if !rustix::process::geteuid().is_root() {
            return typing(command, typed);
        }
        let mut theirs = Command::new("setpriv");
        let id = NOBODY.to_string();
        theirs.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
        theirs.arg(command.get_program()).args(command.get_args());
        theirs.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        theirs.current_dir(self.lab.root());
        typing(theirs, typed)
    }

    /// Goes on with the last session.
    pub(super) fn resume(&self) -> Run {
        let transcript = self.lab.user.project.path("transcript.jsonl");
        let provider = format!("replay:{}", transcript.display());
        Run::of(self.run(&["session", "resume", "--json", "--provider", &provider]))
    }

    /// Processes of theirs with such words in their command.
    pub(super) fn processes(&self, words: &str) -> Vec<i32> {
        let place = self.lab.user.project.path("").display().to_string();
        let numbers = std::fs::read_dir("/proc").unwrap().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter(|pid: &i32| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                line.contains(words) && line.contains(&place)
            })
            .collect()
    }

    /// Kills their processes with such words in their command, but for those with one of these; whether there was any.
    pub(super) fn kill(&self, words: &str, but: &[&str]) -> bool {
        let line = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        let mut found = self.processes(words);
        found.retain(|pid| line(*pid).is_ok_and(|line| !but.iter().any(|it| line.contains(it))));
        // What one of them had split off may be gone with it.
        let killed = found.into_iter().filter_map(Pid::from_raw);
        killed.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count() > 0
    }

    /// Containers that were shown something of theirs, as the engine lists them.
    pub(super) fn containers(&self) -> Vec<String> {
        let listed = ask(&self.socket, "containers/json?all=true");
        let ids = listed.as_array().unwrap().iter().map(|one| one["Id"].as_str().unwrap());
        let place = self.lab.user.project.path("").display().to_string();
        let is_theirs = |id: &&str| {
            ask(&self.socket, &format!("containers/{id}/json")).to_string().contains(&place)
        };
        ids.filter(is_theirs).map(str::to_owned).collect()
    }

    /// Waits until nothing of theirs is there any more: no process, no door, no container.
    #[track_caller]
    pub(super) fn leaves_nothing(&self) {
        let left = || (self.processes("kernel"), self.doors(), self.containers());
        until_gone(&format!("no process, door or container of {} is left", self.engine), left);
    }

    /// The doors of gates.
    pub(super) fn doors(&self) -> Vec<PathBuf> {
        let run = self.lab.user.project.state().join("fluffy/run");
        let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "gate")).collect()
    }
}

/// What an engine answers.
fn ask(socket: &Path, what: &str) -> Value {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "60", "--unix-socket"]).arg(socket);
    let output = command.arg(format!("http://engine/v1.41/{what}")).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Waits for something that no event tells of.
#[track_caller]
pub(super) fn eventually(what: &str, holds: impl Fn() -> bool) {
    until_gone(what, || !holds());
}

/// Waits until nothing is left.
#[track_caller]
fn until_gone<T: Default + PartialEq + Debug>(what: &str, left: impl Fn() -> T) {
    let mut last = left();
    for _ in 0..600 {
        if last == T::default() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
        last = left();
    }
    panic!("it does not come to pass that {what}: {last:?}");
}
