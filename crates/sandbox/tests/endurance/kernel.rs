//! A kernel in a process of its own, which runs sandboxes until it is killed.
//!
//! It is this test binary, started again with a variable set. A test of this name runs it; without the
//! variable the test has nothing to do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use fluffy_sandbox::{
    Config, Job, Native, NativeOptions, Runtime as _, Sandbox, Store, Stream, Template, Watcher,
    Workspace,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::counted::{Place, children_of};

const WHAT: &str = "FLUFFY_ENDURANCE_KERNEL";
const WHERE: &str = "FLUFFY_ENDURANCE_PLACE";
const TOKEN: &str = "FLUFFY_ENDURANCE_TOKEN";

/// A kernel that was started.
pub(crate) struct Kernel {
    pub(crate) process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Kernel {
    /// Starts a kernel that does this.
    pub(crate) fn start(place: &Place, what: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kernel::a_kernel_runs_when_it_is_asked_to", "--nocapture"])
            .env(WHAT, what)
            .env(WHERE, place.path())
            .env(TOKEN, place.token())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process, said }
    }

    /// Waits until it says this.
    pub(crate) fn says(&mut self, word: &str) {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            if line.contains(word) {
                return;
            }
            line.clear();
        }
        panic!("the kernel ended before it said `{word}`");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Kills the process that makes its sandboxes, and would end them after it.
    pub(crate) fn kill_its_maker(&self) {
        let makers: Vec<String> = children_of(self.process.id())
            .into_iter()
            // What is in a process namespace of its own is a sandbox's first process.
            .filter(|child| {
                let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
                let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
                numbers.split_whitespace().count() == 1
            })
            .collect();
        assert_eq!(makers.len(), 1, "{makers:?}");
        for maker in makers.iter().filter_map(|maker| Pid::from_raw(maker.parse().unwrap())) {
            kill_process(maker, Signal::KILL).unwrap();
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // It may have been killed before.
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

pub(crate) fn open(state: &Path) -> Native {
    let options = NativeOptions {
        program: env!("CARGO_BIN_EXE_sandbox-tester").into(),
        state: state.to_owned(),
        path: Vec::new(),
        env: Vec::new(),
    };
    Native::open(options).unwrap()
}

#[test]
fn a_kernel_runs_when_it_is_asked_to() {
    let Ok(what) = std::env::var(WHAT) else { return };
    let place = PathBuf::from(std::env::var_os(WHERE).unwrap());
    let token = std::env::var(TOKEN).unwrap();
    let native = open(&place.join("state"));
    match what.as_str() {
        "loop" => run_on(&native, &place, &token),
        "one" => hold(&native, &token, |_| {}),
        "paused" => hold(&native, &token, |sandbox| sandbox.pause().unwrap()),
        other => panic!("no kernel does `{other}`"),
    }
}

/// Says that a job has printed.
struct Says(Sender<()>);

impl Watcher for Says {
    fn printed(&self, _stream: Stream, bytes: &[u8]) {
        say(&String::from_utf8_lossy(bytes));
        // Nobody listens after the first time.
        let _heard = self.0.send(());
    }
}

/// Runs one sandbox and waits for its end, which never comes.
fn hold(native: &Native, token: &str, then: impl FnOnce(&dyn Sandbox)) {
    let script =
        "(setsid sh -c 'trap \"\" HUP TERM; echo there; while :; do sleep 5; done' \"$0-daemon\" &)
        trap '' TERM; while :; do sleep 5; done";
    let job = Job::new("sh").args(["-c", script, token]);
    let sandbox = native.create(Config::of(Template::CodeExecutor), job).unwrap();
    let (says, said) = channel();
    sandbox.start(Arc::new(Says(says))).unwrap();
    said.recv().unwrap();
    then(&*sandbox);
    say("held");
    sandbox.wait().unwrap();
}

/// Runs sandboxes of all kinds, several at a time, for ever.
fn run_on(native: &Native, place: &Path, token: &str) {
    say("runs");
    std::thread::scope(|threads| {
        for number in 0..3_usize {
            threads.spawn(move || {
                for round in number.. {
                    one(native, place, token, round);
                }
            });
        }
    });
}

fn one(native: &Native, place: &Path, token: &str, round: usize) {
    let store = if round.is_multiple_of(2) { Store::Disk } else { Store::Memory };
    let volume = native.volume(store).unwrap();
    let workspace = Workspace::overlay(&place.join("project"), volume);
    let config = Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap();
    let script = "echo new > new; mkdir -m 0 closed; (setsid sleep 100 &); sleep 0.0$(($$ % 3))";
    let job = Job::new("sh").args(["-c", script, token]);
    if round.is_multiple_of(5) {
        let sandbox = native.create(config, Job::new("sleep").args(["100"])).unwrap();
        sandbox.start(Arc::new(())).unwrap();
        sandbox.pause().unwrap();
        sandbox.remove();
    } else {
        native.run(config, job, Arc::new(())).unwrap();
    }
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever listens may be gone.
    let _heard = writeln!(out, "{word}").and_then(|()| out.flush());
}
