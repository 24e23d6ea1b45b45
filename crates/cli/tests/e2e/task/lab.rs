//! Small real projects, and what a model would say about them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Answer, User};

/// A language in which tasks are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    JavaScript,
}

/// A project with a task to be done in it.
pub(crate) struct Lab {
    pub(crate) user: User,
    pub(crate) language: Language,
}

/// What a run of a task told.
pub(crate) struct Run {
    pub(crate) events: Vec<Value>,
    pub(crate) code: i32,
    pub(crate) err: String,
}

impl Language {
    pub(crate) const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::JavaScript];

    /// The files of a project that can add.
    fn project(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Rust => &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
                ),
                (
                    "Cargo.lock",
                    "version = 3\n\n[[package]]\nname = \"sums\"\nversion = \"0.1.0\"\n",
                ),
                ("src/lib.rs", "pub fn add(a: i64, b: i64) -> i64 {\n    a + b\n}\n"),
                ("tests/add.rs", "#[test]\nfn adds() {\n    assert_eq!(sums::add(1, 2), 3);\n}\n"),
                (".gitignore", "/target\n"),
            ],
            Self::Python => &[
                ("sums.py", "def add(a, b):\n    return a + b\n"),
                (
                    "test_add.py",
                    "from sums import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n",
                ),
                (".gitignore", "__pycache__/\n"),
            ],
            Self::JavaScript => &[
                ("package.json", "{\n  \"name\": \"sums\",\n  \"type\": \"module\"\n}\n"),
                ("sums.js", "export const add = (a, b) => a + b;\n"),
                (
                    "add.test.js",
                    "import test from 'node:test';\nimport assert from 'node:assert/strict';\nimport { add } from './sums.js';\n\ntest('adds', () => assert.equal(add(1, 2), 3));\n",
                ),
            ],
        }
    }

    /// A test for doubling, in a file of its own.
    pub(crate) fn test(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => (
                "tests/double.rs",
                "#[test]\nfn doubles() {\n    assert_eq!(sums::double(4), 8);\n}\n",
            ),
            Self::Python => (
                "test_double.py",
                "from sums import double\n\n\ndef test_doubles():\n    assert double(4) == 8\n",
            ),
            Self::JavaScript => (
                "double.test.js",
                "import test from 'node:test';\nimport assert from 'node:assert/strict';\nimport * as sums from './sums.js';\n\ntest('doubles', () => assert.equal(sums.double(4), 8));\n",
            ),
        }
    }

    /// The file with the code.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Python => "sums.py",
            Self::JavaScript => "sums.js",
        }
    }

    /// Code that doubles.
    pub(crate) fn solution(self) -> String {
        let (_, before) = self.project().iter().find(|(name, _)| *name == self.source()).unwrap();
        let more = match self {
            Self::Rust => "\npub fn double(a: i64) -> i64 {\n    2 * a\n}\n",
            Self::Python => "\n\ndef double(a):\n    return 2 * a\n",
            Self::JavaScript => "export const double = (a) => 2 * a;\n",
        };
        format!("{before}{more}")
    }

    /// Code that should double and does not.
    pub(crate) fn wrong_solution(self) -> String {
        self.solution().replace("2 * a", "3 * a")
    }
}

impl Lab {
    /// A project under git with one commit.
    pub(crate) fn new(language: Language) -> Self {
        let lab = Self::without_git(language);
        lab.git(&["init", "-q", "-b", "main"]);
        lab.git(&["config", "user.name", "Ada"]);
        lab.git(&["config", "user.email", "ada@example.org"]);
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "start"]);
        lab
    }

    /// The same without git.
    pub(crate) fn without_git(language: Language) -> Self {
        let lab = Self { user: User::new(), language };
        for (name, text) in language.project() {
            lab.user.write(name, text);
        }
        lab
    }

    /// An empty project.
    pub(crate) fn empty(language: Language) -> Self {
        Self { user: User::new(), language }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.user.project.root()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.root())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", self.user.project.path(""))
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Writes a transcript beside the project.
    pub(crate) fn transcript(&self, turns: &[Value]) -> PathBuf {
        self.user.transcript(turns)
    }

    /// The command that runs a task with these turns.
    pub(crate) fn command(&self, options: &[&str], turns: &[Value]) -> Command {
        let provider = format!("replay:{}", self.transcript(turns).display());
        let mut args = vec!["run", "--json", "--provider", &provider];
        args.extend(options);
        args.push("add a function that doubles");
        let mut command = self.user.command(&args);
        // The toolchains are the user's own.
        command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
        if self.language == Language::Python {
            command.env("PATH", with_pytest());
        }
        command
    }

    /// Runs a task with these turns.
    pub(crate) fn run(&self, options: &[&str], turns: &[Value]) -> Run {
        let output = self.command(options, turns).stdin(Stdio::null()).output().unwrap();
        Run::of(Answer::of(output))
    }

    /// Runs a task at a terminal, at which this is typed.
    pub(crate) fn typing(&self, options: &[&str], turns: &[Value], typed: &str) -> Answer {
        crate::program::typing(self.command(options, turns), typed)
    }

    /// Everything that the model was told by its tools.
    pub(crate) fn heard(&self, run: &Run) -> String {
        let database = self.user.ledger_dir().join("ledger/0001.db");
        let id = run.all("session.started")[0]["session_id"].as_str().unwrap();
        let session = fluffy_kernel::StoredSession::read(&database, id).unwrap();
        let answers = session.turns.iter().flat_map(|turn| turn.answers.values());
        answers.map(|answer| format!("{} {}\n", answer.tool, answer.content)).collect()
    }

    /// What the model was told by one tool, in order; calls of one turn in the order of their ids.
    pub(crate) fn contents(&self, run: &Run, tool: &str) -> Vec<Value> {
        let database = self.user.ledger_dir().join("ledger/0001.db");
        let id = run.all("session.started")[0]["session_id"].as_str().unwrap();
        let session = fluffy_kernel::StoredSession::read(&database, id).unwrap();
        let answers = session.turns.iter().flat_map(|turn| turn.answers.values());
        answers.filter(|answer| answer.tool == tool).map(|answer| answer.content.clone()).collect()
    }

    /// Every file with its content and its time, but for git's own.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, (Vec<u8>, i64, i64, u32)> {
        let mut found = BTreeMap::new();
        collect(&self.root(), &self.root(), &mut found);
        found
    }

    /// The turns of a model that does everything right.
    pub(crate) fn good_turns(&self) -> Vec<Value> {
        let (test, text) = self.language.test();
        vec![
            say("I look first.", &[call("fs.read", json!({"path": self.language.source()}))]),
            say("A test.", &[write(test, text)]),
            say("It must fail.", &[run_tests()]),
            say("Now the code.", &[write(self.language.source(), &self.language.solution())]),
            say("It must pass.", &[run_tests()]),
            say("Done.", &[call("task.complete", json!({"summary": "add double"}))]),
        ]
    }
}

fn collect(root: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, (Vec<u8>, i64, i64, u32)>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let stat = std::fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_owned();
        if name == Path::new(".git") {
            continue;
        }
        let bytes =
            if stat.is_file() { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
        found.insert(name, (bytes, stat.mtime(), stat.mtime_nsec(), stat.mode()));
        if stat.is_dir() {
            collect(root, &path, found);
        }
    }
}

/// The path with the Python that has pytest before everything else.
pub(crate) fn with_pytest() -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/py/bin");
    let place = std::fs::canonicalize(&place).unwrap_or_else(|error| {
        panic!("no pytest at {}: {error}; run scripts/test", place.display())
    });
    format!("{}:{}", place.display(), std::env::var("PATH").unwrap_or_default())
}

pub(crate) fn say(text: &str, calls: &[Value]) -> Value {
    json!({"text": text, "tool_calls": calls, "usage": {"input_tokens": 10, "output_tokens": 5}})
}

pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

pub(crate) fn write(path: &str, content: &str) -> Value {
    call("fs.write", json!({"path": path, "content": content}))
}

pub(crate) fn run_tests() -> Value {
    call("test.run", json!({}))
}

pub(crate) fn complete() -> Value {
    say("Done.", &[call("task.complete", json!({"summary": "add double"}))])
}

impl Run {
    pub(crate) fn of(answer: Answer) -> Self {
        Self { events: answer.json_lines(), code: answer.code, err: answer.err }
    }

    /// Events of one type.
    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The answers to the calls of one tool.
    pub(crate) fn answers(&self, tool: &str) -> Vec<&Value> {
        self.all("tool.finished").into_iter().filter(|event| event["tool"] == tool).collect()
    }

    /// The states that the work went through.
    pub(crate) fn states(&self) -> Vec<&str> {
        self.all("state.changed").iter().map(|event| event["to"].as_str().unwrap()).collect()
    }

    /// Fails unless the task was completed.
    #[track_caller]
    pub(crate) fn assert_done(&self) {
        let told = self.told();
        assert_eq!(self.code, 0, "{told}");
        assert_eq!(self.events.last().unwrap()["type"], "task.completed", "{told}");
    }

    /// Fails unless the task ended without being completed, with this code.
    #[track_caller]
    pub(crate) fn assert_not_done(&self, code: i32) {
        let told = self.told();
        assert_eq!(self.code, code, "{told}");
        assert!(self.all("task.completed").is_empty(), "{told}");
        assert_eq!(self.all("task.failed").len(), 1, "{told}");
    }

    pub(crate) fn told(&self) -> String {
        let lines: Vec<String> = self.events.iter().map(ToString::to_string).collect();
        format!("{}\n{}\ncode {}", lines.join("\n"), self.err, self.code)
    }
}

/// A hook of the repository.
pub(crate) fn hook(lab: &Lab, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = lab.root().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
