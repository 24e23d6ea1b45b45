//! The driver under test, and who it runs for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use fluffy_sandbox::{Native, NativeOptions, Runtime};
use tempfile::TempDir;

/// Not 65534, which the kernel shows for every user that a namespace does not know.
const NOBODY: u32 = 65_533;

/// Where the second run finds the driver's program, and its own directory.
const PLACE: &str = "FLUFFY_CONTRACT_PLACE";

/// Runs one part of the contract as whoever we are, and once more as an ordinary user if we are root; and both again
/// inside the kernel's own confinement, where it is to hold as well.
pub(crate) fn holds(name: &str, part: fn(&dyn Runtime)) {
    if let Some(place) = std::env::var_os(PLACE) {
        let place = PathBuf::from(place);
        return part(&open(&program(), &place.join("state")));
    }
    let place = place();
    part(&open(&program(), &place.path().join("state")));
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let own = copies(place.path(), "own", None);
    let (spec, tester) = confine(&own, name);
    sbx_9_confined(start(&tester, &["confine", &spec], &own, None));
    if rustix::process::geteuid().is_root() {
        let theirs = copies(place.path(), "theirs", Some(NOBODY));
        let test = theirs.join("contract");
        let plain = start(&test, &["--exact", name, "--nocapture"], &theirs, Some(NOBODY));
        assert!(plain.success(), "as an ordinary user: {plain}");
        let (spec, tester) = confine(&theirs, name);
        sbx_9_confined(start(&tester, &["confine", &spec], &theirs, Some(NOBODY)));
    }
}

#[track_caller]
fn sbx_9_confined(status: ExitStatus) {
    assert!(status.success(), "inside the kernel's own confinement: {status}");
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

/// Copies of the programs, for somebody.
fn copies(place: &Path, directory: &str, owner: Option<u32>) -> PathBuf {
    // The build may lie where nobody else can look.
    let copies = [(std::env::current_exe().unwrap(), "contract"), (program(), "sandbox-tester")];
    let directory = place.join(directory);
    fs::create_dir(&directory).unwrap();
    for (from, name) in &copies {
        let to = directory.join(name);
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).unwrap();
    }
    chown(&directory, owner, owner).unwrap();
    directory
}

/// What the tester is told to run one test of this program confined: in a file, and by which program. The contract
/// makes its projects where temporary files are kept, so that has to be written.
fn confine(place: &Path, name: &str) -> (String, PathBuf) {
    let spec = serde_json::json!({
        "project": place,
        "writable": ["/var/tmp"],
        "home": null,
        "shown": [],
        "run": [place.join("contract"), "--exact", name, "--nocapture"],
    });
    let file = place.join("confine.json");
    fs::write(&file, spec.to_string()).unwrap();
    (file.to_str().unwrap().to_owned(), place.join("sandbox-tester"))
}

/// Runs a program with its own place, as somebody.
fn start(program: &Path, args: &[&str], place: &Path, user: Option<u32>) -> ExitStatus {
    let mut command = Command::new(program);
    command.args(args).env(PLACE, place).current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.status().unwrap()
}
