//! What a test asks of the tester that confines itself, and what came of it. Both sides read this file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program to run confined as the kernel is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Confine {
    /// The project.
    pub(crate) project: PathBuf,
    /// What else can be written.
    pub(crate) writable: Vec<PathBuf>,
    /// Where sandboxes write.
    #[serde(default)]
    pub(crate) volumes: Vec<PathBuf>,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// What of hidden places is shown.
    pub(crate) shown: Vec<PathBuf>,
    /// What is open that should not be.
    #[serde(default)]
    pub(crate) leaked: Vec<PathBuf>,
    /// The program and its arguments; none to be confined and end; `self` and `drive` to go on as it is.
    pub(crate) run: Vec<String>,
}

/// What came of confining: the first line that is printed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Confined {
    /// How long it took.
    pub(crate) took_us: u64,
    /// Who it is.
    pub(crate) uid: u32,
    /// What is weaker than it could be.
    pub(crate) notes: Vec<String>,
    /// What is not shown.
    pub(crate) passed_over: Vec<PathBuf>,
    /// Why it is not confined.
    pub(crate) error: Option<String>,
}
