//! The engine under test, and who it runs for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fluffy_sandbox::{Engine, EngineKind, EngineOptions, ImageChoice, Runtime};
use fluffy_testkit::engines::{is_there, socket};
use tempfile::TempDir;

/// Not 65534, which the kernel shows for every user that a namespace does not know.
const NOBODY: u32 = 65_533;

/// Where the second run finds the driver's program, and its own directory.
const PLACE: &str = "FLUFFY_CONTRACT_PLACE";

/// Runs one part of the contract as an ordinary user.
pub(crate) fn holds(kind: EngineKind, name: &str, part: fn(&dyn Runtime)) {
    ordinarily(kind, name, |place| {
        let options = options(kind, socket(kind), place);
        part(&open(options));
    });
}

/// Runs a test as an ordinary user, who has a place of their own with the driver's program in it.
pub(crate) fn ordinarily(kind: EngineKind, name: &str, test: impl FnOnce(&Path)) {
    if let Some(place) = std::env::var_os(PLACE) {
        return test(Path::new(&place));
    }
    if !is_there(kind) {
        return;
    }
    let place = place();
    let theirs = copies(place.path());
    if !rustix::process::geteuid().is_root() {
        return test(&theirs);
    }
    let status = Command::new(theirs.join("engines"))
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, &theirs)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .status()
        .unwrap();
    assert!(status.success(), "as an ordinary user: {status}");
}

fn tester() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sandbox-tester"))
}

/// What the driver is told, for somebody who has this place and an engine that listens there.
pub(crate) fn options(kind: EngineKind, socket: PathBuf, place: &Path) -> EngineOptions {
    EngineOptions {
        engine: kind,
        sockets: vec![socket],
        image: ImageChoice::Base,
        program: place.join("sandbox-tester"),
        state: place.join("state"),
        path: Vec::new(),
        env: Vec::new(),
    }
}

/// The driver, with its image.
pub(crate) fn open(options: EngineOptions) -> Engine {
    let engine = Engine::open(options).unwrap_or_else(|error| panic!("{error:?}"));
    engine.image_prepared().unwrap();
    engine
}

fn place() -> TempDir {
    let place = tempfile::Builder::new().prefix("fluffy-engine-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Copies of the programs, for somebody: the build may lie where nobody else can look.
fn copies(place: &Path) -> PathBuf {
    let copies = [(std::env::current_exe().unwrap(), "engines"), (tester(), "sandbox-tester")];
    let directory = place.join("theirs");
    fs::create_dir(&directory).unwrap();
    for (from, name) in &copies {
        let to = directory.join(name);
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    directory
}
