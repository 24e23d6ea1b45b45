//! A home with secrets, a project and state in it, and programs that are confined.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::confined::{Confine, Confined};
use crate::spec::{Control, Drive, Report, Seen};

/// Not 65534, which the kernel shows for every user that a namespace does not know.
pub(crate) const NOBODY: u32 = 65_533;

const TESTER: &str = env!("CARGO_BIN_EXE_sandbox-tester");

/// Who starts the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests.
    Same,
    /// Somebody without any right, when root runs the tests.
    Nobody,
}

impl User {
    /// Everybody who can be tried here.
    pub(crate) fn all() -> Vec<Self> {
        if is_root() { vec![Self::Same, Self::Nobody] } else { vec![Self::Same] }
    }

    /// Somebody who is not root.
    pub(crate) fn ordinary() -> Self {
        if is_root() { Self::Nobody } else { Self::Same }
    }

    pub(crate) fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        if self == Self::Nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir("/");
        command
    }

    /// The user's number.
    pub(crate) fn id(self) -> u32 {
        match self {
            Self::Same => rustix::process::geteuid().as_raw(),
            Self::Nobody => NOBODY,
        }
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// One scene; gone when dropped.
pub(crate) struct Scene {
    directory: TempDir,
    pub(crate) user: User,
}

/// What was seen of a confined program.
pub(crate) struct Ran {
    pub(crate) confined: Confined,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) success: bool,
}

impl Scene {
    /// A scene that belongs to this user, who starts the kernel.
    pub(crate) fn new(user: User) -> Self {
        Self::below("/var/tmp", user)
    }

    /// The same below another directory.
    pub(crate) fn below(above: &str, user: User) -> Self {
        let directory = tempfile::Builder::new().prefix("fluffy-l1-").tempdir_in(above).unwrap();
        let scene = Self { directory, user };
        for (name, text) in [
            ("home/.ssh/id_ed25519", "secret key"),
            ("home/.aws/credentials", "secret token"),
            ("home/.bash_history", "secret command"),
            ("home/.cargo/credentials.toml", "secret registry"),
            ("home/.cargo/bin/tool", "#!/bin/sh\necho tool\n"),
            ("home/.gitconfig", "[user]\n"),
            ("home/sibling/.env", "secret of the sibling"),
            ("home/state/ledger", "state"),
            ("outside/file", "outside"),
            // Where the tester expects a project.
            ("project/src/main.rs", "fn main() {}\n"),
        ] {
            let path = scene.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for name in ["state/sandboxes", "bin"] {
            fs::create_dir_all(scene.path(name)).unwrap();
        }
        fs::set_permissions(scene.path("home/.ssh"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(scene.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if user == User::Nobody {
            give(scene.directory.path());
        }
        let tester = scene.path("bin/tester");
        if fs::hard_link(TESTER, &tester).is_err() {
            // In another process: a program that is open for writing cannot be run.
            assert!(Command::new("cp").arg(TESTER).arg(&tester).status().unwrap().success());
        }
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// As text, for arguments.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Lays out here what cargo and rustc need of the toolchain that the tests are built with, which may lie where
    /// nobody else can look.
    pub(crate) fn toolchain(&self, name: &str) {
        let asked = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
        let from = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim_end());
        let to = self.path(name);
        for program in ["cargo", "rustc"] {
            lay(&from.join("bin").join(program), &to.join("bin").join(program));
        }
        let own = format!("{}-", std::env::consts::ARCH);
        for library in fs::read_dir(from.join("lib")).unwrap().flatten() {
            if library.file_type().unwrap().is_file() {
                lay(&library.path(), &to.join("lib").join(library.file_name()));
            }
        }
        for target in fs::read_dir(from.join("lib/rustlib")).unwrap().flatten() {
            if target.file_name().to_str().unwrap().starts_with(&own) {
                lay(&target.path(), &to.join("lib/rustlib").join(target.file_name()));
            }
        }
    }

    /// What the kernel would be told here.
    pub(crate) fn confine(&self, run: &[&str]) -> Confine {
        Confine {
            project: self.path("project"),
            writable: vec![self.path("state"), self.path("home/state")],
            volumes: vec![self.path("state/sandboxes")],
            home: Some(self.path("home")),
            shown: vec![self.path("home/.cargo/bin"), self.path("home/.gitconfig")],
            leaked: Vec::new(),
            run: run.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    /// Runs a program confined.
    pub(crate) fn run(&self, run: &[&str]) -> Ran {
        self.run_with(&self.confine(run), "")
    }

    /// The same with other surroundings, and input.
    pub(crate) fn run_with(&self, confine: &Confine, input: &str) -> Ran {
        let (mut child, _) = self.start(confine, Stdio::piped());
        // Whoever does not read it has gone.
        let _gone = child.stdin.take().unwrap().write_all(input.as_bytes());
        seen(child.wait_with_output().unwrap())
    }

    /// Starts a program confined.
    pub(crate) fn start(&self, confine: &Confine, stdin: Stdio) -> (std::process::Child, PathBuf) {
        let file = tempfile::NamedTempFile::new_in(self.path("")).unwrap();
        let (mut writer, path) = file.keep().unwrap();
        writer.write_all(&serde_json::to_vec(confine).unwrap()).unwrap();
        drop(writer);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let child = self
            .user
            .command(self.path("bin/tester"))
            .arg("confine")
            .arg(&path)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        (child, path)
    }

    /// Runs an attack confined, and gives its report.
    pub(crate) fn attack(&self, args: &[&str]) -> Report {
        let tester = self.text("bin/tester");
        let run: Vec<&str> =
            [tester.as_str(), "attack"].into_iter().chain(args.iter().copied()).collect();
        let ran = self.run(&run);
        ran.must_succeed();
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Runs an attack in a sandbox of the confined kernel.
    pub(crate) fn drive(&self, drive: Drive) -> Seen {
        let drive = Drive { scene: self.path(""), ..drive };
        let line = format!("{}\n", serde_json::to_string(&drive).unwrap());
        let ran = self.run_with(&self.confine(&["self", "drive"]), &line);
        ran.must_succeed();
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Runs an attack where the layer that stops it is not there, in namespaces that hold nothing else. Never as root.
    pub(crate) fn uncontained(&self, control: Control) -> (Report, Seen) {
        assert_ne!(self.user.id(), 0, "controls never run as root");
        let control = Control { scene: self.path(""), ..control };
        let mut child = self.user.command(self.path("bin/tester"));
        let child = child.arg("control").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let line = format!("{}\n", serde_json::to_string(&control).unwrap());
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let seen: Seen = serde_json::from_slice(&output.stdout).unwrap();
        (serde_json::from_str(&seen.stdout).unwrap(), seen)
    }

    /// Runs a script unconfined, as the same user: the control.
    pub(crate) fn control(&self, script: &str) -> Output {
        self.user.command("/bin/sh").args(["-c", script]).output().unwrap()
    }
}

fn seen(output: Output) -> Ran {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let (first, rest) = stdout.split_once('\n').unwrap_or_default();
    Ran {
        confined: serde_json::from_str(first)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))),
        stdout: rest.to_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        success: output.status.success(),
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn must_succeed(&self) {
        assert_eq!(self.confined.error, None);
        assert!(self.success, "{}{}", self.stdout, self.stderr);
    }
}

/// What an attack answered to one of its tries.
#[track_caller]
pub(crate) fn answer<'a>(report: &'a Report, what: &str) -> &'a str {
    let found = report.tries.iter().find(|(label, _)| label == what);
    found.map_or_else(|| panic!("{what} was not tried: {report:?}"), |(_, answer)| answer)
}

/// The same files under another name.
fn lay(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).unwrap().flatten() {
            lay(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop)).unwrap();
    }
}

fn give(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}
