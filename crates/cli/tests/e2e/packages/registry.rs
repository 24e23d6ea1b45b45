//! A registry on loopback that a test fills, attacks with and reads the log of.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::program::User;
use crate::task::lab::{Run, say};

/// The token that the user's own settings hold.
pub(super) const TOKEN: &str = "tok-0123456789abcdef";

/// A registry that serves packages of ours.
pub(super) struct Registry {
    process: Child,
    directory: tempfile::TempDir,
    port: u16,
}

impl Registry {
    pub(super) fn start() -> Self {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/peers");
        let directory = tempfile::tempdir().unwrap();
        let made = Command::new("python3")
            .arg(scripts.join("packages.py"))
            .arg(directory.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut process = Command::new("python3")
            .arg(scripts.join("registry.py"))
            .arg(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, directory, port: line.trim().parse().unwrap() }
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked of it.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Has an archive be something else from now on.
    pub(super) fn swap(&self, name: &str, bytes: &[u8]) {
        let swap = self.directory.path().join("swap");
        std::fs::create_dir_all(&swap).unwrap();
        std::fs::write(swap.join(name), bytes).unwrap();
    }

    /// The user's own settings: this registry, and a token for it.
    pub(super) fn npmrc(&self) -> String {
        format!(
            "registry={}/\n//127.0.0.1:{}/:_authToken={TOKEN}\naudit=false\nfund=false\n",
            self.address(),
            self.port
        )
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// A user whose own settings name a registry, with an empty project.
pub(super) struct Shopper {
    pub(super) user: User,
    pub(super) registry: Registry,
}

impl Shopper {
    pub(super) fn new() -> Self {
        let (user, registry) = (User::new(), Registry::start());
        std::fs::write(user.project.path(".npmrc"), registry.npmrc()).unwrap();
        Self { user, registry }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.user.project.root()
    }

    /// Runs a task in which a model makes these calls, one a turn.
    pub(super) fn run(&self, options: &[&str], calls: &[Value]) -> Run {
        let output = self.command(options, calls).stdin(Stdio::null()).output().unwrap();
        Run::of(crate::program::Answer::of(output))
    }

    /// The same at a terminal, at which this is typed.
    pub(super) fn typing(&self, calls: &[Value], typed: &str) -> crate::program::Answer {
        crate::program::typing(self.command(&[], calls), typed)
    }

    fn command(&self, options: &[&str], calls: &[Value]) -> Command {
        let turns: Vec<Value> =
            calls.iter().map(|call| say("", std::slice::from_ref(call))).collect();
        let provider = format!("replay:{}", self.user.transcript(&turns).display());
        let mut args = vec!["run", "--json", "--provider", &provider];
        args.extend(options);
        args.push("install something");
        let mut command = self.user.command(&args);
        // The interpreter of Python lies in the home of whoever runs the tests, on some machines.
        let index = format!("{}/simple", self.registry.address());
        command.env("PIP_INDEX_URL", index).env("PIP_TRUSTED_HOST", "127.0.0.1");
        command
    }

    /// Every byte that the project, the ledger and the environments hold.
    pub(super) fn everything(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for top in [self.root(), self.user.project.state()] {
            collect(&top, &mut bytes);
        }
        bytes
    }
}

fn collect(directory: &Path, bytes: &mut Vec<u8>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let found = std::fs::symlink_metadata(entry.path()).unwrap();
        if found.is_dir() {
            collect(&entry.path(), bytes);
        } else if found.is_file() {
            bytes.extend(std::fs::read(entry.path()).unwrap_or_default());
        }
    }
}

/// A call that installs.
pub(super) fn install(arguments: Value) -> Value {
    json!({"name": "deps.install", "arguments": arguments})
}

/// A call that runs a program.
pub(super) fn shell(command: &str, args: &[&str]) -> Value {
    json!({"name": "shell.run", "arguments": {"command": command, "args": args}})
}
