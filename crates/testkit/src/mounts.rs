//! A mount namespace of its own for a test that needs a disk of another size.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests ask their surroundings, and fail by panicking"
)]

use std::path::Path;
use std::process::Command;

/// Is there for the run of a test in its own namespace.
const APART: &str = "FLUFFY_TEST_APART";

/// Whether this is the run in a mount namespace of its own. If not, the test, named as the test program names it, is run in one.
///
/// # Panics
///
/// When that run fails.
pub fn is_apart(test: &str) -> bool {
    if std::env::var_os(APART).is_some() {
        return true;
    }
    let mut apart = Command::new("unshare");
    apart.arg("--mount").arg(std::env::current_exe().unwrap());
    let status = apart.args(["--exact", test, "--nocapture"]).env(APART, "1").status();
    assert!(status.unwrap().success(), "{test} failed in a mount namespace of its own");
    false
}

/// Lays an empty file system of 64 MiB over a directory.
///
/// # Panics
///
/// When that cannot be done.
pub fn mount_small(directory: &Path, owner: u32) {
    let mut mount = Command::new("mount");
    let options = format!("size=64m,uid={owner},gid={owner},mode=700");
    mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(directory);
    assert!(mount.status().unwrap().success());
}
