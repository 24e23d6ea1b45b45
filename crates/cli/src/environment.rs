//! What the process was given: read once, here.

use std::ffi::OsString;
use std::path::PathBuf;

use fluffy_base::Secret;
use fluffy_kernel::IdentityOverrides;

/// The setting that names a builder of the user's own, as a variable.
const BUILDER_COMMAND: &str = "FLUFFY_FORGE_BUILDER_COMMAND";

/// The settings that say what makes the sandboxes, as variables.
const SANDBOX_SETTINGS: [&str; 3] =
    ["FLUFFY_SANDBOX_RUNTIME", "FLUFFY_SANDBOX_IMAGE", "FLUFFY_KERNEL_CONFINEMENT"];

/// The environment as far as it matters.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) config_home: Option<PathBuf>,
    pub(crate) cache_home: Option<PathBuf>,
    /// Where the user's session keeps its sockets.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Where the user's session bus says that it is.
    pub(crate) session_bus: Option<String>,
    /// Where Docker and Podman listen, if not where they usually do.
    pub(crate) docker_host: Option<String>,
    pub(crate) container_host: Option<String>,
    /// The proxy that the user has for everything.
    pub(crate) proxy: Option<Secret>,
    /// What is reached without it.
    pub(crate) no_proxy: Vec<String>,
    /// The variables that may be settings of ours: those that begin with `FLUFFY_`.
    pub(crate) settings: Vec<(String, OsString)>,
    /// All variables, for what package managers look at; a kernel has none of them.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) path: Option<OsString>,
    pub(crate) no_color: bool,
    /// Whether the terminal says that it can do nothing but write.
    pub(crate) dumb_terminal: bool,
    /// Where what is not kept may lie.
    pub(crate) temp: Option<PathBuf>,
    /// Who the user says they are to git.
    pub(crate) git_identity: IdentityOverrides,
    /// Whom the kernel's process works for, by the system's word; a client does not say it.
    pub(crate) user: Option<String>,
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
            cache_home: dir("XDG_CACHE_HOME"),
            runtime_dir: dir("XDG_RUNTIME_DIR"),
            session_bus: text("DBUS_SESSION_BUS_ADDRESS"),
            docker_host: text("DOCKER_HOST"),
            container_host: text("CONTAINER_HOST"),
            proxy: either("HTTPS_PROXY", "https_proxy").map(Secret::new),
            no_proxy: either("NO_PROXY", "no_proxy").map(listed).unwrap_or_default(),
            settings: std::env::vars_os()
                .filter_map(|(name, text)| Some((name.into_string().ok()?, text)))
                .filter(|(name, _)| name.starts_with("FLUFFY_"))
                .collect(),
            variables: std::env::vars_os()
                .filter_map(|(name, text)| {
                    Some((name.into_string().ok()?, text.into_string().ok()?))
                })
                .collect(),
            path: std::env::var_os("PATH"),
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb_terminal: std::env::var_os("TERM").is_some_and(|value| value == "dumb"),
            temp: dir("TMPDIR"),
            user: None,
            current_dir: std::env::current_dir().ok(),
            executable: std::env::current_exe().ok(),
            program: std::env::args().next().unwrap_or_else(|| "fluffy".to_owned()),
        }
    }

    /// The same but for what is secret, and what matters to a client only.
    pub(crate) fn parts(&self) -> Self {
        Self {
            home: self.home.clone(),
            state_home: self.state_home.clone(),
            config_home: self.config_home.clone(),
            cache_home: self.cache_home.clone(),
            runtime_dir: self.runtime_dir.clone(),
            docker_host: self.docker_host.clone(),
            container_host: self.container_host.clone(),
            path: self.path.clone(),
            temp: self.temp.clone(),
            git_identity: self.git_identity.clone(),
            user: self.user.clone(),
            current_dir: self.current_dir.clone(),
            executable: self.executable.clone(),
            program: self.program.clone(),
            ..Self::default()
        }
    }

    /// What the project's kernel is given of it: where things lie, and nothing that is secret.
    pub(crate) fn for_kernel(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let dir = |dir: &Option<PathBuf>| dir.clone().map(PathBuf::into_os_string);
        let builder = self.settings.iter().find(|(name, _)| name == BUILDER_COMMAND);
        let sandboxes = self.of_sandboxes();
        let given = [
            ("HOME", dir(&self.home)),
            ("XDG_STATE_HOME", dir(&self.state_home)),
            ("XDG_CONFIG_HOME", dir(&self.config_home)),
            ("XDG_CACHE_HOME", dir(&self.cache_home)),
            ("XDG_RUNTIME_DIR", dir(&self.runtime_dir)),
            ("TMPDIR", dir(&self.temp)),
            ("PATH", self.path.clone()),
            // What has to be seen of this machine depends on it.
            (BUILDER_COMMAND, builder.map(|(_, text)| text.clone())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(sandboxes)
    }

    /// The variables that say what makes the sandboxes. Of addresses only those of sockets, in which nothing is secret.
    pub(crate) fn of_sandboxes(&self) -> Vec<(&'static str, OsString)> {
        let set = |wanted: &&str| self.settings.iter().find(|(name, _)| name == wanted);
        let settings = SANDBOX_SETTINGS.iter();
        let settings = settings.filter_map(|name| Some((*name, set(name)?.1.clone())));
        let hosts = [("DOCKER_HOST", &self.docker_host), ("CONTAINER_HOST", &self.container_host)];
        let hosts = hosts.into_iter().filter_map(|(name, host)| {
            let host = host.as_ref().filter(|host| host.starts_with("unix://"))?;
            Some((name, OsString::from(host)))
        });
        settings.chain(hosts).collect()
    }

    /// What git is told of the user, and what they set for us; their keys are nowhere near.
    pub(crate) fn personal_files(&self) -> Vec<PathBuf> {
        let git = [".gitconfig", ".config/git/config", ".config/git/ignore"];
        let git = self.home.iter().flat_map(|home| git.map(|name| home.join(name)));
        git.chain(self.config_dir().map(|dir| dir.join("config.yaml"))).collect()
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

    /// Where what can be had again lies, such as the tools that check skills; nowhere where there is no home.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        let base = match (&self.cache_home, &self.home) {
            (Some(cache), _) => cache.clone(),
            (None, Some(home)) => home.join(".cache"),
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
