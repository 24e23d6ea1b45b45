//! What the process was given: read once, here.

use std::ffi::OsString;
use std::path::PathBuf;

use fluffy_kernel::IdentityOverrides;

/// The environment as far as it matters.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) path: Option<OsString>,
    pub(crate) no_color: bool,
    /// Whether the terminal says that it can do nothing but write.
    pub(crate) dumb_terminal: bool,
    /// Where what is not kept may lie.
    pub(crate) temp: Option<PathBuf>,
    /// Who the user says they are to git.
    pub(crate) git_identity: IdentityOverrides,
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
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Self {
            git_identity: IdentityOverrides {
                author_name: text("GIT_AUTHOR_NAME"),
                author_email: text("GIT_AUTHOR_EMAIL"),
                committer_name: text("GIT_COMMITTER_NAME"),
                committer_email: text("GIT_COMMITTER_EMAIL"),
                email: text("EMAIL"),
            },
            home: dir("HOME"),
            state_home: dir("XDG_STATE_HOME"),
            path: std::env::var_os("PATH"),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb_terminal: std::env::var_os("TERM").is_some_and(|value| value == "dumb"),
            temp: dir("TMPDIR"),
            current_dir: std::env::current_dir().ok(),
            executable: std::env::current_exe().ok(),
            program: std::env::args().next().unwrap_or_else(|| "fluffy".to_owned()),
        }
    }
}
