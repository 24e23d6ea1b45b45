//! A project, and a sandbox to work on it in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_sandbox::harvest::{Change, HarvestLimits, Kind, harvest};
use fluffy_sandbox::{
    Config, Job, Native, NativeOptions, Outcome, Runtime as _, Store, Template, Volume, Workspace,
};
use tempfile::TempDir;

/// A project in a directory of its own, and the driver.
pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) native: Native,
    shown: Vec<PathBuf>,
    env: Vec<(String, String)>,
    store: Store,
}

/// What became of a script.
pub(crate) struct Done {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) outcome: Outcome,
    volume: Volume,
}

impl Scene {
    /// A project of these files; those that begin with `#!` can be executed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with_path(files, Vec::new())
    }

    /// The same, with programs looked for in these directories first.
    pub(crate) fn with_path(files: &[(&str, &str)], path: Vec<PathBuf>) -> Self {
        let dir =
            tempfile::Builder::new().prefix("fluffy-programs-").tempdir_in("/var/tmp").unwrap();
        for (name, text) in files {
            let file = dir.path().join("project").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let shown = path.clone();
        let usual = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let native = Native::open(NativeOptions {
            program: env!("CARGO_BIN_EXE_sandbox-tester").into(),
            state: dir.path().join("state"),
            path: path.into_iter().chain(usual).collect(),
            env: Vec::new(),
        });
        Self { dir, native: native.unwrap(), shown, env: Vec::new(), store: Store::Memory }
    }

    pub(crate) fn showing(mut self, path: impl Into<PathBuf>) -> Self {
        self.shown.push(path.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn on_disk(mut self) -> Self {
        self.store = Store::Disk;
        self
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// Runs a script in the project.
    pub(crate) fn run(&self, script: &str) -> Done {
        let volume = self.native.volume(self.store).unwrap();
        let mut config = Config::of(Template::CodeExecutor)
            .with_workspace(Workspace::overlay(&self.project(), volume.clone()))
            .unwrap()
            .with_home(&home())
            .unwrap();
        for path in &self.shown {
            config = config.showing(path).unwrap();
        }
        let mut job = Job::new("bash").args(["-euc", script]);
        for (name, value) in &self.env {
            job = job.env(name, value);
        }
        let outcome = self.native.run(config, job, Arc::new(())).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&outcome.stdout.bytes), text(&outcome.stderr.bytes));
        Done { out, err, outcome, volume }
    }

    /// Runs a script that must succeed.
    #[track_caller]
    pub(crate) fn works(&self, script: &str) -> Done {
        let done = self.run(script);
        assert!(done.outcome.is_success(), "{}\n{}\n{}", done.outcome.end, done.out, done.err);
        done
    }
}

impl Done {
    /// The names of what was written, and with a minus of what was deleted.
    pub(crate) fn changes(&self) -> Vec<String> {
        let top = self.volume.content().unwrap();
        let found = harvest(top, Kind::Overlay, &HarvestLimits::default(), &|_| false).unwrap();
        let mut names: Vec<String> = found
            .changes()
            .iter()
            .map(|change| match change {
                Change::Write(file) => file.path().to_string(),
                Change::Delete(path) => format!("-{path}"),
                Change::Replace(path) => format!("!{path}"),
            })
            .collect();
        names.sort();
        names
    }
}

/// The home of whoever runs the tests: inside it is empty but for what is shown.
pub(crate) fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| PathBuf::from("/home/fluffy"), PathBuf::from)
}

/// A directory that a variable names, or one in the home.
pub(crate) fn place(variable: &str, in_home: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| home().join(in_home), PathBuf::from)
}

/// Whether every sandbox shows this anyway.
pub(crate) fn is_the_systems(path: &Path) -> bool {
    path.starts_with("/usr")
}
