//! What an attack is about: a home with secrets, a project, a sibling, and the programs to attack with.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fluffy_base::Digest;
use tempfile::TempDir;

/// Who starts a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests.
    Same,
    /// Somebody without any right, when root runs the tests.
    Nobody,
}

/// Not 65534, which the kernel shows for every user that a namespace does not know.
const NOBODY: u32 = 65_533;

/// The program to attack with.
const TESTER: &str = env!("CARGO_BIN_EXE_sandbox-tester");

/// Copies it. In another process: a program that is open for writing cannot be run, and whatever another
/// thread starts meanwhile would hold it open.
fn copy_tester(to: &Path) {
    assert!(Command::new("cp").arg(TESTER).arg(to).status().unwrap().success());
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

    /// A command as this user.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self == Self::Nobody {
            // Drops the groups as well.
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

/// Whether root runs the tests.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// One scene; gone when dropped.
pub(crate) struct Scene {
    directory: TempDir,
    name: String,
    port: u16,
}

impl Scene {
    /// A scene that belongs to this user.
    pub(crate) fn new(user: User) -> Self {
        // Not in `/tmp`, of which every sandbox has its own: hidden by that alone, a canary proves little.
        let directory = tempfile::Builder::new().prefix("fluffy-").tempdir_in("/var/tmp").unwrap();
        let name = directory.path().file_name().unwrap().to_str().unwrap().to_owned();
        let scene = Self { directory, name, port: free_port() };
        scene.fill();
        if user == User::Nobody {
            give(scene.path());
        }
        // Linked and not copied, and so not given away: it may be large, and nobody is to write to it.
        if fs::hard_link(TESTER, scene.tester()).is_err() {
            copy_tester(&scene.tester());
        }
        scene
    }

    fn fill(&self) {
        for (path, content) in [
            ("home/.ssh/id_ed25519", self.secret()),
            ("home/.ssh/authorized_keys", "somebody\n".to_owned()),
            ("home/.aws/credentials", self.secret()),
            ("home/.bashrc", "# rc\n".to_owned()),
            ("sibling/src/lib.rs", "// sibling\n".to_owned()),
            ("sibling/.env", self.secret()),
            ("project/src/main.rs", "fn main() {}\n".to_owned()),
            ("project/README.md", "# project\n".to_owned()),
            ("project/Cargo.toml", "[package]\n".to_owned()),
            ("project/build.sh", "#!/bin/sh\n".to_owned()),
            ("project/.git/config", "[core]\n".to_owned()),
            ("project/.git/hooks/pre-commit.sample", "#!/bin/sh\n".to_owned()),
            ("run/note", "sockets lie here\n".to_owned()),
            ("cover", self.secret()),
            ("bin/note", "programs lie here\n".to_owned()),
        ] {
            let path = self.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir(self.path().join("state")).unwrap();
        symlink("../home/.ssh/authorized_keys", self.path().join("project/link")).unwrap();
        symlink(self.path().join("home"), self.path().join("project/folder-link")).unwrap();
    }

    /// A second copy of the tester, which nobody runs unless told to.
    pub(crate) fn add_idle(&self, user: User) {
        let idle = self.path().join("bin/idle");
        copy_tester(&idle);
        if user == User::Nobody {
            chown(&idle, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// A copy that asks to be run as the user who owns it: root, if that is possible.
    pub(crate) fn add_privileged(&self, user: User) {
        let program = self.path().join("bin/privileged");
        copy_tester(&program);
        if user == User::Nobody {
            chown(&program, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The tester in it.
    pub(crate) fn tester(&self) -> PathBuf {
        self.path().join("bin/tester")
    }

    /// A text that must never come out.
    pub(crate) fn secret(&self) -> String {
        format!("secret-of-{}", self.name)
    }

    /// A text in the command line of whatever the attack starts.
    pub(crate) fn token(&self) -> String {
        format!("token={}", self.name)
    }

    /// Puts the scene's places into a text.
    pub(crate) fn place(&self, text: &str) -> String {
        let path = self.path().display();
        text.replace("{home}", &format!("{path}/home"))
            .replace("{project}", &format!("{path}/project"))
            .replace("{sibling}", &format!("{path}/sibling"))
            .replace("{bin}", &format!("{path}/bin"))
            .replace("{run}", &format!("{path}/run"))
            .replace("{scene}", &path.to_string())
            .replace("{name}", &self.name)
            .replace("{port}", &self.port.to_string())
    }

    /// Names, kinds, modes, links and contents of everything but what the runtime keeps for itself.
    pub(crate) fn digest(&self) -> String {
        let mut lines = Vec::new();
        for part in ["home", "sibling", "project", "run", "cover", "bin"] {
            describe(&self.path().join(part), &mut lines);
        }
        lines.sort();
        lines.join("\n")
    }

    /// Processes that the attack left: those whose command line holds the token.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let token = self.token();
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|one| one.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&token)
        })
        .collect()
    }
}

/// A port that nobody listened on a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn give(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

fn describe(path: &Path, lines: &mut Vec<String>) {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path.symlink_metadata().unwrap();
    let content = if metadata.is_symlink() {
        fs::read_link(path).unwrap().display().to_string()
    } else if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            describe(&entry.unwrap().path(), lines);
        }
        String::new()
    } else if metadata.is_file() {
        let digest = Digest::of(&fs::read(path).unwrap());
        // The tester's own link count is shared with every other scene that runs.
        let links = if path.ends_with("bin/tester") { 0 } else { metadata.nlink() };
        format!("{digest} {links} {}", metadata.mtime())
    } else {
        String::new()
    };
    lines.push(format!(
        "{} {:o} {}:{} {content}",
        path.display(),
        metadata.mode(),
        metadata.uid(),
        metadata.gid()
    ));
}
