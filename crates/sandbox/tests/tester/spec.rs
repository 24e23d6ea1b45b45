//! What a test asks of the tester, and what the tester saw. Both sides read this file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An attack to run in a sandbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Drive {
    /// The directory that holds everything the attack is about.
    pub(crate) scene: PathBuf,
    /// The program to run, if it is not the tester.
    pub(crate) program: Option<PathBuf>,
    /// The attack's name and arguments.
    pub(crate) attack: Vec<String>,
    /// What the sandbox may use, where that is less than the template gives.
    pub(crate) limits: Narrow,
    /// Files and directories that are open, and would be inherited, when the sandbox is made.
    pub(crate) leaked: Vec<PathBuf>,
    /// Whether the driving process has a terminal.
    pub(crate) terminal: bool,
    /// Whether the driving process ignores signals, blocks some, and hides nothing with its umask.
    pub(crate) unruly: bool,
    /// An attack that runs in a second sandbox and has printed something before the first starts.
    pub(crate) beside: Option<Vec<String>>,
    /// Whether changes go to disk and not to memory.
    pub(crate) on_disk: bool,
    /// The template, if it is not that for running code. The others show no project.
    pub(crate) template: Option<String>,
    /// Whether to say so when the attack has printed something.
    pub(crate) announced: bool,
    /// The engine that makes the sandbox, and where it listens; without one, namespaces do.
    pub(crate) engine: Option<(String, PathBuf)>,
}

/// Limits for one attack.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Narrow {
    /// In bytes.
    pub(crate) memory: Option<u64>,
    /// At a time.
    pub(crate) processes: Option<u32>,
    /// In milliseconds.
    pub(crate) duration: Option<u64>,
    /// In bytes.
    pub(crate) captured: Option<u64>,
    /// In bytes.
    pub(crate) disk: Option<u64>,
    /// In each place that can be written.
    pub(crate) files: Option<u64>,
    /// Of one process.
    pub(crate) open_files: Option<u64>,
}

/// An attack to run where the layer that stops it is not there: in namespaces that hold nothing else.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Control {
    /// The directory that holds everything the attack is about; the only one that can be written.
    pub(crate) scene: PathBuf,
    /// The program to run, if it is not the tester as it already runs.
    pub(crate) program: Option<PathBuf>,
    /// The attack's name and arguments.
    pub(crate) attack: Vec<String>,
    /// Directories that are laid out empty and can be written.
    pub(crate) blank: Vec<PathBuf>,
    /// Files to make in them.
    pub(crate) planted: Vec<PathBuf>,
    /// Files over which one of the scene is laid: what, and by what.
    pub(crate) covered: Vec<(PathBuf, PathBuf)>,
    /// Addresses that the loopback device has beside its own.
    pub(crate) addresses: Vec<String>,
    /// Where to listen: `tcp:`, `udp:`, `unix:` or `abstract:`, and an address.
    pub(crate) listening: Vec<String>,
    /// System calls that a filter answers with `EHWPOISON`, which no kernel does of itself: proof that
    /// the attack makes the call, where no machine should ever carry it out.
    pub(crate) watched: Vec<String>,
    /// Files and directories that are open when the attack starts.
    pub(crate) leaked: Vec<PathBuf>,
    /// Whether the attack has a terminal.
    pub(crate) terminal: bool,
    /// Whether the surroundings ignore signals, block some, and hide nothing with their umask.
    pub(crate) unruly: bool,
    /// Whether there is a process to kill; `{victim}` in the arguments becomes its id.
    pub(crate) victim: bool,
    /// Whether the attack's parent is an ordinary process and not the first of its namespace.
    pub(crate) mortal_parent: bool,
    /// Whether the attack is asked to end by signals, and then to say whether it is still there.
    pub(crate) poked: bool,
    /// Whether the attack runs as a second user of the namespace, to whom its files do not belong.
    pub(crate) second_user: bool,
    /// Whether the scene is the root of the file system.
    pub(crate) confined_to_scene: bool,
    /// An attack that runs in the same namespaces and has printed something before.
    pub(crate) beside: Option<Vec<String>>,
}

/// What was seen of an attack from outside.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Why it did not run.
    pub(crate) error: Option<String>,
    /// How it ended.
    pub(crate) end: String,
    /// Limits it ran into.
    pub(crate) reached: Vec<String>,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it printed to standard error.
    pub(crate) stderr: String,
    /// Whether what it printed was cut.
    pub(crate) cut: bool,
    /// What lies in the volume: kind and path.
    pub(crate) changes: Vec<String>,
    /// What was typed into the terminal of the surroundings.
    pub(crate) typed: String,
    /// Listeners that somebody spoke to.
    pub(crate) heard: Vec<String>,
    /// What became of the victim, or of the mortal parent.
    pub(crate) victim: String,
    /// Whether processes outlived the attack.
    pub(crate) survivors: bool,
}

/// What an attack reports: one line of JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// What it tried, and `ok` or the name of the error that came back.
    pub(crate) tries: Vec<(String, String)>,
    /// What it could read.
    pub(crate) found: Vec<String>,
}
