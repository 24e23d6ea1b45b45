//! What governing costs: calls of a model through the whole path, beside what they do at the least.
//!
//! `cargo bench --package fluffy-cli --bench session`; the row of `rg` is missing where `rg` is. Words after `--` name the
//! rows to measure: `read`, `write`, `tests`, `search`, `turns`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(
    clippy::disallowed_methods,
    reason = "the bench makes files, keeps time and starts programs"
)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench tells what it measured")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_base::Json;
use fluffy_kernel::{
    CommitOptions, GitOptions, KernelConfig, ModelCall, Registry, Session, SessionConfig,
    WorkshopOptions,
};
use fluffy_ledger::{Layout, load_or_create_key};
use fluffy_policy::{DEFAULT_POLICY, PolicyFile};
use fluffy_sandbox::{
    Changes, Config, Job, Native, NativeOptions, Runtime, Store, Template, Workspace,
};
use fluffy_testkit::Project;
use fluffy_workflow::{Access, Conventions, Mode};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluffy");
const DIRECTORIES: usize = 1000;
const FILES: usize = 100;
const PATTERN: &str = "needle_[0-9]+";

/// What measures and reports one row.
type Row = fn(&Bench);

struct Bench {
    project: Project,
    runtime: Arc<dyn Runtime>,
    session: Session,
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |row: &str| wanted.is_empty() || wanted.iter().any(|it| it == row);
    let bench = Bench::new();
    let rows: [(&str, Row); 5] = [
        ("read", Bench::read),
        ("write", Bench::write),
        ("tests", Bench::tests),
        ("search", Bench::search),
        ("turns", |_| turns()),
    ];
    for (_, row) in rows.iter().filter(|(name, _)| is_wanted(name)) {
        row(&bench);
    }
}

impl Bench {
    fn new() -> Self {
        let project = Project::new().unwrap();
        std::fs::write(project.root().join("source.js"), "x".repeat(4096)).unwrap();
        std::fs::write(project.root().join("a.test.js"), "require('node:test')('a', () => {});\n")
            .unwrap();
        let runtime: Arc<dyn Runtime> = Arc::new(
            Native::open(NativeOptions {
                program: PROGRAM.into(),
                state: project.state().join("sandboxes"),
                path: Vec::new(),
                env: Vec::new(),
            })
            .unwrap(),
        );
        let key = load_or_create_key(&project.state().join("key"), [7; 32]).unwrap();
        let layout = Layout::new(project.state().join("ledger"), project.state().join("note"));
        let policy = PolicyFile::parse("the shipped policy", DEFAULT_POLICY).unwrap();
        let registry = Registry::with_builtins().unwrap();
        let config = SessionConfig {
            kernel: KernelConfig::new(policy, registry, layout, key),
            workshop: WorkshopOptions {
                runtime: Arc::clone(&runtime),
                project: project.root(),
                home: None,
                shown: Vec::new(),
                program: PROGRAM.into(),
            },
            sessions: project.state().join("sessions"),
            conventions: Conventions::default(),
            test_command: None,
            test_coverage: None,
            dependencies: None,
            new_repository: false,
            git: GitOptions::default(),
            commits: CommitOptions::default(),
            limits: fluffy_kernel::JobLimits::default(),
            observer: Arc::new(()),
        };
        let session = Session::begin(config, "a task", Mode::Strict, Access::Write).unwrap();
        session.start().unwrap();
        Self { project, runtime, session }
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        let arguments = Json::new(arguments).unwrap();
        let call = ModelCall { id: "call".to_owned(), tool: tool.to_owned(), arguments };
        let answer = self.session.call(&[call]).remove(0);
        assert!(answer.success, "{tool}: {}", answer.content);
        answer.content
    }

    fn read(&self) {
        let path = self.project.root().join("source.js");
        let bare = measure(2000, || drop(std::fs::read(&path).unwrap()));
        let governed = measure(2000, || drop(self.call("fs.read", json!({"path": "source.js"}))));
        report("fs.read, 4 KB", governed, "read(2) alone", bare);
    }

    fn write(&self) {
        let mut number = 0;
        let mut write = || {
            number += 1;
            let content = format!("// {number}\n");
            self.call("fs.write", json!({"path": "tests/b.test.js", "content": content}));
        };
        let peer = "a sandbox that runs `true`";
        let (governed, bare) = by_turns(300, &mut write, &mut || self.sandbox());
        report("fs.write, as models do it", governed, peer, bare);
        // What stands ready is not there yet, and each is made as the last one is recorded.
        let (governed, bare) = (measure(300, &mut write), measure(300, || self.sandbox()));
        report("fs.write, one after another", governed, peer, bare);
    }

    /// The same job with nothing to do.
    fn sandbox(&self) {
        let volume = self.runtime.volume(Store::Memory).unwrap();
        let root = self.project.root();
        let workspace =
            Workspace { at: root.clone(), layers: vec![root], changes: Changes::Overlay(volume) };
        let config = Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap();
        assert!(
            self.runtime.run(config, Job::new("/bin/true"), Arc::new(())).unwrap().is_success()
        );
    }

    fn tests(&self) {
        let root = self.project.root();
        let bare = measure(10, || run("node", &["--test"], &root));
        let governed = measure(10, || drop(self.call("test.run", json!({}))));
        report("test.run, one test for node", governed, "`node --test` by hand", bare);
    }

    fn search(&self) {
        let root = self.project.root();
        for directory in 0..DIRECTORIES {
            let at = root.join(format!("d{:02}/e{directory:03}", directory % 37));
            std::fs::create_dir_all(&at).unwrap();
            for file in 0..FILES {
                let mut text = format!("// file {file} of {directory}\nfn work() {{\n").repeat(12);
                if (directory * FILES + file).is_multiple_of(1999) {
                    text.push_str(&format!("let needle_{file} = 1;\n"));
                }
                std::fs::write(at.join(format!("f{file:02}.rs")), text).unwrap();
            }
        }
        let governed = || drop(self.call("search.grep", json!({"pattern": PATTERN})));
        if Command::new("rg").arg("--version").output().is_err() {
            eprintln!("rg is not installed; its row is missing");
            report("search.grep, 100,000 files", measure(10, governed), "nothing", Duration::ZERO);
            return;
        }
        governed();
        let bare = measure(10, || run("rg", &["--line-number", PATTERN], &root));
        report("search.grep, 100,000 files", measure(10, governed), "`rg`", bare);
    }
}

/// A turn of the loop without calls is measured by `cargo bench --package fluffy-agent --bench turn`; here the whole
/// demo, beside its commands by hand.
fn turns() {
    let temp = Project::new().unwrap();
    let demo = measure(5, || {
        let status = Command::new(PROGRAM)
            .args(["demo", "--language", "javascript"])
            .env("XDG_STATE_HOME", temp.state())
            .env("TMPDIR", temp.root())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success());
    });
    let made = newest(&temp.root());
    // The baseline, the red run, the green run and a commit.
    let bare = measure(5, || {
        for _run in 0..3 {
            run("node", &["--test"], &made);
        }
        let by = ["-c", "user.name=a", "-c", "user.email=a@b"];
        run("git", &[&by[..], &["commit", "--quiet", "--allow-empty", "-m", "x"]].concat(), &made);
    });
    report("fluffy demo", demo, "its tests and its commit by hand", bare);
}

fn newest(dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    entries.map(|entry| entry.path().join("project")).find(|path| path.is_dir()).unwrap()
}

fn run(program: &str, args: &[&str], at: &Path) {
    let mut command = Command::new(program);
    command.args(args).current_dir(at).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap();
}

/// The median of so many rounds.
fn measure(rounds: usize, mut round: impl FnMut()) -> Duration {
    median((0..rounds).map(|_| timed(&mut round)).collect())
}

/// The medians of two that take turns, so that what else the machine does meets both. Before each there is a pause, far
/// shorter than a model's: what one has begun beside it is not measured with the other.
fn by_turns(rounds: usize, one: &mut dyn FnMut(), other: &mut dyn FnMut()) -> (Duration, Duration) {
    let rested = |round: &mut dyn FnMut()| {
        std::thread::sleep(Duration::from_millis(40));
        timed(round)
    };
    let (ones, others) = (0..rounds).map(|_| (rested(&mut *one), rested(&mut *other))).unzip();
    (median(ones), median(others))
}

fn timed(mut round: impl FnMut()) -> Duration {
    let start = Instant::now();
    round();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn report(what: &str, ours: Duration, peer: &str, theirs: Duration) {
    println!("{what:<30} {:>10.1?}   {peer}: {:>10.1?}", ours, theirs);
}
