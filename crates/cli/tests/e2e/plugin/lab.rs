//! A project in which plugins are installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Answer, User, typing};

/// The directory with the kits.
pub(crate) fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").canonicalize().unwrap()
}

pub(crate) struct Lab {
    pub(crate) user: User,
    /// Where programs are looked for.
    path: String,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { user: User::new(), path: std::env::var("PATH").unwrap_or_default() }
    }

    /// One where Deno is found, in a directory that is called like this; nothing where there is none for this kind of machine.
    pub(crate) fn with_deno(directory: &str) -> Option<Self> {
        let deno = deno()?;
        let lab = Self::new();
        let place = lab.user.project.path("deno").join(directory);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::copy(deno, place.join("deno")).unwrap();
        let path = format!("{}:{}", place.display(), lab.path);
        Some(Self { path, ..lab })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut all = vec!["plugin"];
        all.extend(args);
        let mut command = self.user.command(&all);
        command.env("PATH", &self.path);
        command
    }

    pub(crate) fn plugin(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).stdin(Stdio::null()).output().unwrap())
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
        let answer = typing(self.command(args), "y\n");
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

/// Deno, as `scripts/test` installs it.
fn deno() -> Option<PathBuf> {
    if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        return None;
    }
    let place = "../../target/tools/js/node_modules/@deno/linux-x64-glibc/deno";
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
    assert!(place.is_file(), "no Deno at {}: run scripts/test", place.display());
    Some(place)
}
