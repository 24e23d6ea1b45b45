//! What the process was given: read once, here.

use std::ffi::OsString;
use std::path::PathBuf;

use fluffy_base::Secret;
use fluffy_kernel::IdentityOverrides;

/// The environment as far as it matters.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) config_home: Option<PathBuf>,
    /// Where the user's session keeps its sockets.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Where the user's session bus says that it is.
    pub(crate) session_bus: Option<String>,
    /// The proxy that the user has for everything.
    pub(crate) proxy: Option<Secret>,
    /// What is reached without it.
    pub(crate) no_proxy: Vec<String>,
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
        let either = |one: &str, other: &str| text(one).or_else(|| text(other));
        let listed = |names: String| names.split(',').map(|name| name.trim().to_owned()).collect();
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
            config_home: dir("XDG_CONFIG_HOME"),
            runtime_dir: dir("XDG_RUNTIME_DIR"),
            session_bus: text("DBUS_SESSION_BUS_ADDRESS"),
            proxy: either("HTTPS_PROXY", "https_proxy").map(Secret::new),
            no_proxy: either("NO_PROXY", "no_proxy").map(listed).unwrap_or_default(),
            path: std::env::var_os("PATH"),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb_terminal: std::env::var_os("TERM").is_some_and(|value| value == "dumb"),
            temp: dir("TMPDIR"),
            current_dir: std::env::current_dir().ok(),
            executable: std::env::current_exe().ok(),
            program: std::env::args().next().unwrap_or_else(|| "fluffy".to_owned()),
        }
    }

    /// Where the user's own settings lie; nowhere where there is no home.
    pub(crate) fn config_dir(&self) -> Option<PathBuf> {
        let base = match (&self.config_home, &self.home) {
            (Some(config), _) => config.clone(),
            (None, Some(home)) => home.join(".config"),
            (None, None) => return None,
        };
        Some(base.join("fluffy"))
    }
}

/// What a variable of the process holds that the user named as the place of a secret; nothing if it is empty.
/// Kept nowhere: it is read when it is sent.
#[expect(clippy::disallowed_methods, reason = "the one place that reads variables by their names")]
pub(crate) fn variable(name: &str) -> Option<Secret> {
    let text = std::env::var(name).ok()?;
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| Secret::new(trimmed.to_owned()))
}
