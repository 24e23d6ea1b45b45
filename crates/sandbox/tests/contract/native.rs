//! The driver under test, and who it runs for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fluffy_sandbox::{Native, NativeOptions, Runtime};
use tempfile::TempDir;

/// Not 65534, which the kernel shows for every user that a namespace does not know.
const NOBODY: u32 = 65_533;

/// Where the second run finds the driver's program, and its own directory.
const PLACE: &str = "FLUFFY_CONTRACT_PLACE";

/// Runs one part of the contract as whoever we are, and once more as an ordinary user if we are root.
pub(crate) fn holds(name: &str, part: fn(&dyn Runtime)) {
    if let Some(place) = std::env::var_os(PLACE) {
        let place = PathBuf::from(place);
        return part(&open(&program(), &place.join("state")));
    }
    let place = place();
    part(&open(&program(), &place.path().join("state")));
    if rustix::process::geteuid().is_root() {
        as_somebody_else(place.path(), name);
    }
}

/// The driver's program.
pub(crate) fn program() -> PathBuf {
    match std::env::var_os(PLACE) {
        Some(place) => PathBuf::from(place).join("sandbox-tester"),
        None => PathBuf::from(env!("CARGO_BIN_EXE_sandbox-tester")),
    }
}

fn open(program: &Path, state: &Path) -> Native {
    let options = NativeOptions {
        program: program.to_owned(),
        state: state.to_owned(),
        path: Vec::new(),
        env: Vec::new(),
    };
    Native::open(options).unwrap()
}

fn place() -> TempDir {
    tempfile::Builder::new().prefix("fluffy-native-").tempdir_in("/var/tmp").unwrap()
}

/// Runs one test of this program as somebody without any right.
fn as_somebody_else(place: &Path, name: &str) {
    // The build may lie where nobody else can look.
    let copies = [(std::env::current_exe().unwrap(), "contract"), (program(), "sandbox-tester")];
    let theirs = place.join("theirs");
    fs::create_dir(&theirs).unwrap();
    for (from, name) in &copies {
        let to = theirs.join(name);
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).unwrap();
    }
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let status = Command::new(theirs.join("contract"))
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, &theirs)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .status()
        .unwrap();
    assert!(status.success(), "as an ordinary user: {status}");
}
