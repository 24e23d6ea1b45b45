//! What a job changes through a real overlay is what is harvested from its upper layer.
//!
//! The overlay is mounted in namespaces of its own, on a file system in memory, and is gone by the time
//! it is harvested: only the descriptor is left, as it is after a sandbox.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, Stdio};

use fluffy_sandbox::harvest::{Kind, harvest};

use crate::harvest::{limits, lines, volume};

/// Mounts an overlay, lets the job work in it, and waits with what it left.
const SCRIPT: &str = r#"
set -eu
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir lower upper work merged
( cd lower
  echo a > a; echo b > b; mkdir -p dir/sub other move; echo 1 > dir/one; echo 2 > dir/sub/two
  echo 3 > other/three; echo 4 > other/four; echo 5 > move/five; echo M > Makefile
  echo l1 > linked; ln linked linked2 )
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr,volatile merged
( cd merged; eval "$2" ) 2>&1
umount merged
echo; echo ready
read -r _ || true
"#;

/// What is left when a job has done this; whatever it prints is in front.
fn check(job: &str, expected: &[&str]) {
    let (printed, upper) = run(job);
    let harvest = harvest(upper.as_fd(), Kind::Overlay, &limits(), &|_| false).unwrap();
    assert_eq!(lines(&harvest), expected, "{job}: {printed}");
}

fn run(job: &str) -> (String, OwnedFd) {
    let place = volume();
    let mut child = Command::new("unshare")
        .args(["-Urm", "sh", "-c", SCRIPT, "sh"])
        .arg(place.path())
        .arg(job)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    while !printed.ends_with("\nready\n") {
        assert_ne!(out.read_line(&mut printed).unwrap(), 0, "the overlay failed: {printed}");
    }
    let upper = format!("/proc/{}/root{}/upper", child.id(), place.path().display());
    let upper = OwnedFd::from(File::open(upper).unwrap());
    drop(child.stdin.take());
    out.read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    (printed, upper)
}

#[test]
fn new_and_changed_files_are_written() {
    check(
        "echo A >> a; echo n > new; mkdir -p x/y; echo z > x/y/z; chmod +x x/y/z; echo 11 > dir/one",
        &["w a \"a\\nA\\n\"", "w dir/one \"11\\n\"", "w new \"n\\n\"", "x x/y/z \"z\\n\""],
    );
}

#[test]
fn deletions_are_seen_though_the_system_gives_their_mark_many_names() {
    check("rm a b dir/one; rm -r other", &["d a", "d b", "d dir/one", "d other"]);
}

#[test]
fn a_directory_that_took_the_place_of_another_replaces_it() {
    check(
        "rm -r dir; mkdir dir; echo n > dir/new; mkdir dir/sub",
        &["r dir", "w dir/new \"n\\n\""],
    );
    check("rm a; mkdir a; echo n > a/new", &["r a", "w a/new \"n\\n\""]);
}

#[test]
fn a_file_that_took_the_place_of_a_directory_is_written() {
    check("rm -r dir; echo n > dir", &["w dir \"n\\n\""]);
}

#[test]
fn a_directory_that_moved_is_deleted_and_written() {
    check("mv move moved", &["d move", "w moved/five \"5\\n\""]);
}

#[test]
fn a_name_that_changed_its_case_is_a_deletion_and_a_new_file() {
    check("mv Makefile makefile", &["d Makefile", "w makefile \"M\\n\""]);
}

#[test]
fn a_link_below_is_two_files_once_one_is_changed() {
    check("echo l2 > linked", &["w linked \"l2\\n\""]);
}

#[test]
fn nothing_changed_is_nothing_harvested() {
    check("cat a; ls -R > /dev/null; touch new; rm new", &[]);
}

#[test]
fn special_files_and_links_are_refused() {
    check(
        "mkfifo pipe; ln -s /etc/passwd out; ln -s a in; rm a; ln -s b a; ln b b2; chmod u+s b2",
        &[
            "`a` is not taken: it is a symbolic link, and links are not taken",
            "`b` is not taken: its mode 4644 has a setuid, setgid or sticky bit",
            "`b2` is not taken: its mode 4644 has a setuid, setgid or sticky bit",
            "`in` is not taken: it is a symbolic link, and links are not taken",
            "`out` is not taken: it is a symbolic link, and links are not taken",
            "`pipe` is not taken: it is a named pipe",
        ],
    );
}

#[test]
fn marks_cannot_be_forged_through_the_overlay() {
    // The test's own binary sets the attributes, since no program for that may be installed.
    let exe = std::env::current_exe().unwrap();
    let job = format!(
        "mknod forged c 0 0 && echo FORGED; {}='dir new' '{}' --exact overlay::child_forges_marks",
        FORGED,
        exe.display()
    );
    let job = format!("mkdir new; echo n > new/n; ({job}) || true");
    let (printed, upper) = run(&job);
    assert!(!printed.contains("FORGED"), "{printed}");
    assert!(printed.contains("test result: ok. 1 passed"), "{printed}");
    let harvest = harvest(upper.as_fd(), Kind::Overlay, &limits(), &|_| false).unwrap();
    assert_eq!(lines(&harvest), ["w new/n \"n\\n\""], "{printed}");
}

/// Names the directories for the child that forges marks; a run without it is not a child.
const FORGED: &str = "FLUFFY_TEST_FORGED_DIRECTORIES";

#[test]
fn child_forges_marks() {
    let Some(directories) = std::env::var_os(FORGED) else { return };
    let flags = rustix::fs::XattrFlags::empty();
    for directory in directories.to_str().unwrap().split(' ') {
        for mark in ["opaque", "redirect", "whiteout", "overlay.opaque"] {
            let name = format!("user.overlay.{mark}");
            rustix::fs::setxattr(directory, name.as_str(), b"y", flags).unwrap();
        }
        assert!(rustix::fs::setxattr(directory, "trusted.overlay.opaque", b"y", flags).is_err());
    }
}
