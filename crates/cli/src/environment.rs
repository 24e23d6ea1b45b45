//! What the process was given: read once, here.

use std::ffi::OsString;
use std::path::PathBuf;

/// The environment as far as it matters.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) path: Option<OsString>,
    pub(crate) no_color: bool,
    pub(crate) current_dir: Option<PathBuf>,
    /// The file of this program.
    pub(crate) executable: Option<PathBuf>,
    /// How this program was called, for hints that can be typed as they stand.
    pub(crate) program: String,
}

impl Environment {
    /// Reads the process's environment. Relative directories are ignored, as the XDG rules demand.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub(crate) fn read() -> Self {
        let dir = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        Self {
            home: dir("HOME"),
            state_home: dir("XDG_STATE_HOME"),
            path: std::env::var_os("PATH"),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            current_dir: std::env::current_dir().ok(),
            executable: std::env::current_exe().ok(),
            program: std::env::args().next().unwrap_or_else(|| "fluffy".to_owned()),
        }
    }
}
