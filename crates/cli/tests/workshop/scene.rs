//! A project with a session's layer over it, and a workshop.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fluffy_base::ProjectPath;
use fluffy_base::Span;
use fluffy_kernel::{
    Blobs, CommandError, CommandLine, CommandRun, Edit, EditError, Produced, Sight, Taking,
    TestPlan, Tested, TestsError, Workshop, WorkshopOptions,
};
use fluffy_sandbox::{Native, NativeOptions, Runtime, Watcher};
use fluffy_workflow::{Pattern, Project, Suite, detect};
use tempfile::TempDir;

/// Not 65534, which the kernel shows for every user that a namespace does not know.
const NOBODY: u32 = 65_533;

/// Where a test that is run once more finds the program.
const PLACE: &str = "FLUFFY_WORKSHOP_PLACE";

/// A project and everything that works on it.
pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) workshop: Workshop,
    pub(crate) blobs: Blobs,
}

/// What a scene is made with.
#[derive(Default)]
pub(crate) struct Tools {
    pub(crate) path: Vec<PathBuf>,
    pub(crate) shown: Vec<PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    /// Whether the program itself lies in the project, as it does where it is made.
    pub(crate) at_home: bool,
    /// Whether programs are found in `path` only.
    pub(crate) nothing_else: bool,
}

/// How tests are to be run.
#[derive(Default)]
pub(crate) struct Ask<'a> {
    pub(crate) suites: Option<&'a [Suite]>,
    pub(crate) pattern: Option<&'a str>,
    pub(crate) timeout: Option<Span>,
    pub(crate) coverage: bool,
    pub(crate) hidden: &'a [&'a str],
}

pub(crate) fn line(words: &[&str], cwd: Option<&str>, timeout: Option<u64>) -> CommandLine {
    let args: Vec<_> = words[1..].iter().map(|word| (*word).to_owned()).collect();
    CommandLine::new(words[0], &args, cwd.map(path), timeout.map(Span::from_ms)).unwrap()
}

impl Tools {
    /// Rust through rustup, as most have it.
    pub(crate) fn rust() -> Self {
        let (cargo, rustup) = (place("CARGO_HOME", ".cargo"), place("RUSTUP_HOME", ".rustup"));
        Self {
            path: vec![cargo.join("bin")],
            env: vec![
                ("RUSTUP_HOME".to_owned(), rustup.display().to_string()),
                ("CARGO_HOME".to_owned(), cargo.display().to_string()),
            ],
            shown: vec![cargo.join("bin"), rustup],
            ..Self::default()
        }
    }

    /// Python with pytest, from the virtual environment that `scripts/test` makes.
    pub(crate) fn python() -> Self {
        let place = installed("py");
        let asked = Command::new(place.join("bin/python"))
            .args(["-c", "import sys; print(sys.base_prefix)"])
            .output()
            .unwrap();
        let base = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
        let mut shown = vec![place.clone()];
        if !base.starts_with("/usr") {
            shown.push(base);
        }
        Self { path: vec![place.join("bin")], shown, ..Self::default() }
    }
}

/// What `scripts/test` has installed for tests.
pub(crate) fn installed(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools").join(name);
    match place.canonicalize() {
        Ok(place) => place,
        Err(error) => panic!("{}: {error}; `./scripts/test quick` makes it", place.display()),
    }
}

pub(crate) fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

impl Scene {
    /// A project of these files; those that begin with `#!` can be executed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, Tools::default())
    }

    pub(crate) fn with(files: &[(&str, &str)], tools: Tools) -> Self {
        let dir =
            tempfile::Builder::new().prefix("fluffy-workshop-").tempdir_in("/var/tmp").unwrap();
        for name in ["project", "layer", "scratch"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut program = program();
        if tools.at_home {
            let inside = dir.path().join("project/fluffy");
            fs::copy(program, &inside).unwrap();
            program = inside;
        }
        let usual = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let usual = usual.into_iter().filter(|_| !tools.nothing_else);
        let native = Native::open(NativeOptions {
            program: program.clone(),
            state: dir.path().join("state"),
            path: tools.path.into_iter().chain(usual).collect(),
            env: tools.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        });
        let runtime: Arc<dyn Runtime> = Arc::new(native.unwrap());
        let workshop = Workshop::new(WorkshopOptions {
            runtime,
            project: dir.path().join("project"),
            home: Some(home()),
            shown: tools.shown,
            program,
        });
        let blobs = Blobs::open(&dir.path().join("blobs")).unwrap();
        let scene = Self { dir, workshop, blobs };
        for (name, text) in files {
            scene.write(name, text);
        }
        scene
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// What the session changed, laid over the project.
    pub(crate) fn layer(&self) -> PathBuf {
        self.dir.path().join("layer")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        put(&self.project().join(name), text.as_ref());
    }

    /// Puts jest and vitest into the project, as `npm install` would.
    pub(crate) fn install_modules(&self) {
        copy_tree(&installed("js/node_modules"), &self.project().join("node_modules"));
    }

    /// Writes a file of the session's.
    pub(crate) fn stage(&self, name: &str, text: impl AsRef<[u8]>) {
        put(&self.layer().join(name), text.as_ref());
    }

    /// Every file of the project with the layer over it.
    pub(crate) fn files(&self) -> BTreeSet<ProjectPath> {
        let mut files = BTreeSet::new();
        for top in [self.project(), self.layer()] {
            walk(&top, &top, &mut files);
        }
        files
    }

    pub(crate) fn edit(&self, edit: &Edit) -> Result<Produced, EditError> {
        let files = self.files();
        let below = |path: &ProjectPath| below(&files, path);
        let taking = Taking { blobs: &self.blobs, files: &below, skip: &|_| false };
        self.workshop.edit(&[self.layer()], edit, &taking)
    }

    /// Runs a command in the project's root.
    pub(crate) fn run(&self, words: &[&str]) -> Result<CommandRun, CommandError> {
        self.command(&line(words, None, None), &[])
    }

    pub(crate) fn command(
        &self,
        line: &CommandLine,
        hidden: &[&str],
    ) -> Result<CommandRun, CommandError> {
        let files = self.files();
        let below = |path: &ProjectPath| below(&files, path);
        let ignored = |path: &ProjectPath| path.as_str() == "ignored";
        let taking = Taking { blobs: &self.blobs, files: &below, skip: &ignored };
        let hidden: Vec<_> = hidden.iter().map(|name| path(name)).collect();
        let (layers, scratch) = ([self.layer()], self.scratch());
        let sight = Sight { layers: &layers, hidden: &hidden, scratch: &scratch };
        let run = self.workshop.command(&sight, line, &taking, Arc::new(()));
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "layers of a job go with it");
        run
    }

    /// The suites that are found in the project with the layer over it.
    pub(crate) fn suites(&self) -> Vec<Suite> {
        let files: Vec<_> = self.files().into_iter().collect();
        let read = |path: &ProjectPath| {
            let tops = [self.layer(), self.project()];
            tops.iter().find_map(|top| fs::read_to_string(top.join(path.as_str())).ok())
        };
        let texts = files.iter().filter_map(|path| Some((path.clone(), read(path)?))).collect();
        detect(&Project { files: &files, texts: &texts })
    }

    /// Runs all tests.
    #[track_caller]
    pub(crate) fn test(&self) -> Tested {
        self.test_with(&Ask::default()).unwrap()
    }

    pub(crate) fn test_with(&self, ask: &Ask<'_>) -> Result<Tested, TestsError> {
        let (files, suites) = (self.files(), self.suites());
        let hidden: Vec<_> = ask.hidden.iter().map(|name| path(name)).collect();
        let (layers, scratch) = ([self.layer()], self.scratch());
        let sight = Sight { layers: &layers, hidden: &hidden, scratch: &scratch };
        let pattern = ask.pattern.map(|text| Pattern::parse(text).unwrap());
        let plan = TestPlan {
            suites: ask.suites.unwrap_or(&suites),
            pattern: pattern.as_ref(),
            timeout: ask.timeout,
            coverage: ask.coverage,
            files: &files,
        };
        let before = self.snapshot();
        let watcher: Arc<dyn Watcher> = Arc::new(());
        let tested = self.workshop.test(&sight, &plan, &watcher);
        assert_eq!(self.snapshot(), before, "tests change nothing of the project");
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "layers of a job go with it");
        tested
    }

    /// The content of a file that was produced.
    #[track_caller]
    pub(crate) fn content(&self, produced: &Produced) -> Vec<u8> {
        match produced {
            Produced::File(_, stored) => self.blobs.get(stored).unwrap(),
            Produced::Nothing(path) => panic!("{path} is gone"),
        }
    }

    /// Every name in the project with its content, to see that nothing changed.
    pub(crate) fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = BTreeSet::new();
        walk(&self.project(), &self.project(), &mut files);
        let read = |path: &ProjectPath| fs::read(self.project().join(path.as_str())).unwrap();
        files.iter().map(|path| (PathBuf::from(path.as_str()), read(path))).collect()
    }
}

pub(crate) fn below(files: &BTreeSet<ProjectPath>, path: &ProjectPath) -> Vec<ProjectPath> {
    let inside = format!("{path}/");
    let is_in = |file: &&ProjectPath| *file == path || file.as_str().starts_with(&inside);
    files.iter().filter(is_in).cloned().collect()
}

fn put(file: &Path, text: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    let mode = if text.starts_with(b"#!") { 0o755 } else { 0o644 };
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// A copy whose files are the same, where they can be.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (kind, from, to) =
            (entry.file_type().unwrap(), entry.path(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&from, &to);
        } else if kind.is_symlink() {
            symlink(fs::read_link(from).unwrap(), to).unwrap();
        } else {
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).unwrap();
        }
    }
}

/// Every file below `top`, without what a project has git ignore.
fn walk(top: &Path, at: &Path, files: &mut BTreeSet<ProjectPath>) {
    for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        let Some(name) = entry.path().strip_prefix(top).unwrap().to_str().map(str::to_owned) else {
            continue;
        };
        let Ok(name) = ProjectPath::parse(&name) else { continue };
        if name.file_name() == "node_modules" {
            continue;
        }
        if kind.is_dir() {
            walk(top, &entry.path(), files);
        } else if kind.is_file() {
            files.insert(name);
        } else if entry.metadata().unwrap().rdev() == 0 && !kind.is_symlink() {
            let gone = below(files, &name);
            files.retain(|file| !gone.contains(file));
        }
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

fn program() -> PathBuf {
    match std::env::var_os(PLACE) {
        Some(place) => PathBuf::from(place).join("fluffy"),
        None => PathBuf::from(env!("CARGO_BIN_EXE_fluffy")),
    }
}

/// Runs one test of this program once more as somebody without any right, if we are root.
pub(crate) fn also_as_an_ordinary_user(name: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::Builder::new().prefix("fluffy-user-").tempdir_in("/var/tmp").unwrap();
    // The build may lie where nobody else can look.
    let copies = [
        (std::env::current_exe().unwrap(), "workshop"),
        (PathBuf::from(env!("CARGO_BIN_EXE_fluffy")), "fluffy"),
    ];
    for (from, name) in &copies {
        let to = place.path().join(name);
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).unwrap();
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let status = Command::new(place.path().join("workshop"))
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, place.path())
        .env("HOME", "/home/nobody")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .status()
        .unwrap();
    assert!(status.success(), "as an ordinary user: {status}");
}
