//! Starts `fluffy` as a person would, with a state directory of its own.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use fluffy_testkit::Project;
use serde_json::{Value, json};

/// A user with one project.
pub(crate) struct User {
    pub(crate) project: Project,
}

/// What a command answered.
pub(crate) struct Answer {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { project: Project::new().unwrap() }
    }

    /// Writes what a model says beside the project, to be played.
    pub(crate) fn transcript(&self, turns: &[Value]) -> PathBuf {
        let path = self.project.path("transcript.jsonl");
        let mut text = "{\"v\":1,\"kind\":\"transcript\"}\n".to_owned();
        for turn in turns {
            text += &format!("{turn}\n");
        }
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fluffy"));
        command
            .args(args)
            .current_dir(self.project.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.project.path(""))
            .env("XDG_STATE_HOME", self.project.state())
            // Its kernel goes when the last client does, so that nothing is left of a test.
            .env("FLUFFY_KERNEL_IDLE_SECONDS", "0");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Answer {
        let mut child = self.start(args);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // Written beside reading: a receipt must not wait for the last request.
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        Answer::of(output)
    }

    /// Runs a command at a terminal, at which this is typed.
    pub(crate) fn run_typing(&self, args: &[&str], typed: &str) -> Answer {
        typing(self.command(args), typed)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Reads a file of the project.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.root().join(name)).unwrap()
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Submits lines and gives the receipts.
    pub(crate) fn submit(&self, args: &[&str], lines: &[&str]) -> Vec<Value> {
        let mut all = vec!["kernel", "submit", "--json"];
        all.extend(args);
        let answer = self.run_with(&all, (lines.join("\n") + "\n").as_bytes());
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.json_lines()
    }

    /// The one directory with the project's ledger.
    pub(crate) fn ledger_dir(&self) -> PathBuf {
        let projects = self.project.state().join("fluffy/projects");
        let mut dirs = std::fs::read_dir(projects).unwrap();
        dirs.next().unwrap().unwrap().path()
    }
}

impl Answer {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What became of the first call of a tool.
    #[track_caller]
    pub(crate) fn finished(&self, tool: &str) -> Value {
        let is_it = |event: &Value| event["type"] == "tool.finished" && event["tool"] == tool;
        let found = self.json_lines().into_iter().find(is_it);
        found.unwrap_or_else(|| panic!("{tool} in {}{}", self.out, self.err))
    }
}

/// What a model says that calls these tools, one a turn, and is done.
pub(crate) fn one_a_turn(calls: &[Value]) -> Vec<Value> {
    let turns = calls.iter().map(|call| json!({ "text": "", "tool_calls": [call] }));
    turns.chain([json!({ "text": "done" })]).collect()
}

/// Runs a command at a terminal, at which this is typed.
pub(crate) fn typing(command: Command, typed: &str) -> Answer {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let terminal = options.read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut person = std::fs::File::from(person);
    person.write_all(typed.as_bytes()).unwrap();
    // It is their terminal, as that of a login is: the kernel looks for that.
    let mut at = Command::new("setsid");
    at.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args()).env_clear();
    at.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    at.current_dir(command.get_current_dir().unwrap());
    Answer::of(at.stdin(terminal).output().unwrap())
}

/// Every process that works for a user's projects: kernels and what started them.
pub(crate) fn working(user: &User) -> Vec<i32> {
    let state = user.project.state().display().to_string();
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    let is_its = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("\0kernel\0serve\0") && words.contains(&state)
    };
    numbers.filter(is_its).collect()
}

/// Kills them all, whatever they do.
pub(crate) fn kill_working(user: &User) {
    for pid in working(user) {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// A request for `echo` by the user.
pub(crate) fn echo(id: &str, text: &str) -> String {
    request(id, "user", "say it", &format!(r#"{{"name":"echo","params":{{"text":"{text}"}}}}"#))
}

pub(crate) fn request(id: &str, actor: &str, intent: &str, call: &str) -> String {
    format!(
        r#"{{"request_id":"{id}","ts_ms":1,"actor":"{actor}","intent":"{intent}","tool_call":{call}}}"#
    )
}

/// What differs from run to run, made the same: hashes, the directory, the program.
pub(crate) fn steady(text: &str, user: &User) -> String {
    let text = text.replace(&user.project.path("").display().to_string(), "<dir>/");
    let text = text.replace(env!("CARGO_BIN_EXE_fluffy"), "<fluffy>");
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || matches!(c, '+' | '=') {
            word.push(c);
            continue;
        }
        let hex = word.len() == 64 && word.chars().all(|c| c.is_ascii_hexdigit());
        out += if hex { "<hash>" } else { &word };
        word.clear();
        out.push(c);
    }
    out.trim_end().to_owned()
}
