//! A project in which plugins are installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Answer, User};

/// The directory with the kits.
pub(crate) fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").canonicalize().unwrap()
}

pub(crate) struct Lab {
    pub(crate) user: User,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { user: User::new() }
    }

    pub(crate) fn plugin(&self, args: &[&str]) -> Answer {
        let mut all = vec!["plugin"];
        all.extend(args);
        Answer::of(self.user.command(&all).stdin(Stdio::null()).output().unwrap())
    }

    /// Does it, and it is done.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> Answer {
        let answer = self.plugin(args);
        assert_eq!(answer.code, 0, "{args:?}: {}{}", answer.out, answer.err);
        answer
    }

    /// A person at a terminal agrees, and it is done.
    #[track_caller]
    pub(crate) fn agreed(&self, args: &[&str]) -> Answer {
        let mut all = vec!["plugin"];
        all.extend(args);
        let answer = self.user.run_typing(&all, "y\n");
        assert_eq!(answer.code, 0, "{args:?}: {}{}", answer.out, answer.err);
        answer
    }

    #[track_caller]
    pub(crate) fn install(&self, dir: &Path) -> Answer {
        self.agreed(&["install", dir.to_str().unwrap()])
    }

    /// What a tool gives.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, input: &Value) -> Value {
        let answer = self.done(&["call", tool, "--input", &input.to_string(), "--json"]);
        answer.json_lines()[0]["output"].clone()
    }

    /// The stages and changes of plugins that the ledger has, in order.
    pub(crate) fn recorded(&self) -> Vec<String> {
        let log = self.user.run(&["audit", "log", "--json", "--limit", "1000"]).json_lines();
        let told = log.iter().filter_map(|entry| {
            let metadata = &entry["detail"]["metadata"];
            let is = |name: &str| entry["detail"]["event"] == name;
            let told = match (is("plugin_lifecycle"), is("plugin")) {
                (true, _) => &metadata["stage"],
                (_, true) => &metadata["change"],
                _other => return None,
            };
            told.as_str().map(str::to_owned)
        });
        told.collect()
    }
}

/// Runs a command, which must succeed.
#[track_caller]
pub(crate) fn succeeds(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {printed}");
}
