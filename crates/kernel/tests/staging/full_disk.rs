//! A merge on a disk that is full: a small file system in memory, mounted in namespaces of its own.

use std::path::PathBuf;
use std::process::Command;

use fluffy_kernel::{MergeError, Plan, Recovered, carry_out, recover};

use crate::scene::{Scene, stage};

/// Names the directory for the child; a run without it is not a child.
const DIRECTORY: &str = "FLUFFY_TEST_FULL_DISK";

/// The project's disk has 256 KiB; the session's directory is elsewhere.
const SCRIPT: &str = r#"
set -eu
mkdir -p "$FLUFFY_TEST_FULL_DISK/project"
mount -t tmpfs -o size=256k,nr_inodes=64 tmpfs "$FLUFFY_TEST_FULL_DISK/project"
exec "$1" --exact full_disk::child_merges_on_a_full_disk --nocapture
"#;

#[test]
fn child_merges_on_a_full_disk() {
    let Some(top) = std::env::var_os(DIRECTORY) else { return };
    let scene = Scene::new(&PathBuf::from(top), &["a=old", "gone=g", "d/b=old b"]);
    let large = "x".repeat(100_000);
    let too_large = [format!("+a={large}"), format!("+b={large}"), format!("+n/c={large}")];
    let too_many: Vec<String> = (0..80).map(|n| format!("+many/{n}=x")).collect();
    let before = scene.files();
    for words in [&too_large[..], &too_many[..]] {
        let mut staging = scene.staging();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.push("-gone");
        stage(&mut staging, &words);
        let plan = Plan::of(&staging).unwrap();
        let failed = carry_out(&plan, staging.tree(), &scene.session());
        assert!(matches!(failed, Err(MergeError::NotBegun { .. })), "{failed:?}");
        assert_eq!(scene.files(), before);
        assert!(!scene.project().join("n").exists() && !scene.project().join("many").exists());
        assert_eq!(recover(staging.tree(), &scene.session()).unwrap(), Recovered::Nothing);
    }
    let mut staging = scene.staging();
    stage(&mut staging, &[&too_large[0], "-gone"]);
    let plan = Plan::of(&staging).unwrap();
    carry_out(&plan, staging.tree(), &scene.session()).unwrap();
    assert_eq!(scene.files()["a"].1.len(), 100_000, "there is room for this");
    println!("a full disk was seen");
}

#[test]
fn a_full_disk_leaves_the_project_as_it_was() {
    let can =
        Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    if !can.is_ok_and(|can| can.status.success()) {
        // No namespaces for us here.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = Command::new("unshare")
        .args(["-rm", "sh", "-c", SCRIPT, "sh"])
        .arg(std::env::current_exe().unwrap())
        .env(DIRECTORY, dir.path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&run.stdout), text(&run.stderr));
    assert!(run.status.success() && out.contains("a full disk was seen"), "{out}\n{err}");
}
