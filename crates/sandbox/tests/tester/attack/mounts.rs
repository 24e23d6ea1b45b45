//! Leaving the file tree that the sandbox lays out.

use std::fs;
use std::path::Path;

use super::{Report, pairs};
use crate::sys::{Arg, call, descriptor, text};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("mount", mount),
    ("unmount", unmount),
    ("new-mounts", new_mounts),
    ("pivot-root", pivot_root),
    ("chroot", chroot),
    ("proc-root", proc_root),
];

/// Mounts by the old call.
fn mount(args: &[&str], report: &mut Report) {
    let place = text(args[0]);
    let none = c"none";
    let plain = call!(libc::SYS_mount, none, &place, c"tmpfs", 0, Arg::Null);
    report.tried("memory", plain);
    report.tried("processes", call!(libc::SYS_mount, none, &place, c"proc", 0, Arg::Null));
    let bind = libc::MS_BIND | libc::MS_REC;
    report
        .tried("the root again", call!(libc::SYS_mount, c"/", &place, Arg::Null, bind, Arg::Null));
    let remount = libc::MS_BIND | libc::MS_REMOUNT;
    report.tried(
        "the root writable",
        call!(libc::SYS_mount, none, c"/", Arg::Null, remount, Arg::Null),
    );
    let shared = libc::MS_SHARED;
    report
        .tried("the root shared", call!(libc::SYS_mount, none, c"/", Arg::Null, shared, Arg::Null));
}

/// Takes mounts away.
fn unmount(args: &[&str], report: &mut Report) {
    for (label, path) in pairs(args) {
        report.tried(label, call!(libc::SYS_umount2, &text(path), libc::MNT_DETACH));
    }
}

/// Mounts by the newer calls, which filters of the old one do not see.
fn new_mounts(_args: &[&str], report: &mut Report) {
    let at = libc::AT_FDCWD;
    report.tried("fsopen", descriptor(call!(libc::SYS_fsopen, c"tmpfs", 0)));
    report.tried("fspick", descriptor(call!(libc::SYS_fspick, at, c"/", 0)));
    report.tried("fsmount", call!(libc::SYS_fsmount, -1, 0, 0));
    report.tried("fsconfig", call!(libc::SYS_fsconfig, -1, 6, Arg::Null, Arg::Null, 0));
    let copy = (1 | libc::O_CLOEXEC | libc::AT_RECURSIVE).cast_unsigned();
    report.tried("open_tree", descriptor(call!(libc::SYS_open_tree, at, c"/", copy)));
    report.tried("move_mount", call!(libc::SYS_move_mount, -1, c"", -1, c"", 0));
    // Clears the flag `read-only` on the root: set nothing, clear 1.
    let mut attributes = [0_u8; 32];
    attributes[8] = 1;
    report.tried("mount_setattr", call!(libc::SYS_mount_setattr, at, c"/", 0, &attributes, 32));
}

/// Makes another directory the root.
fn pivot_root(args: &[&str], report: &mut Report) {
    std::env::set_current_dir(args[0]).unwrap();
    report.tried("pivot_root", call!(libc::SYS_pivot_root, c".", c"."));
}

/// The classic way out: a new root below, while the current directory stays above it.
fn chroot(args: &[&str], report: &mut Report) {
    let (project, canary) = (Path::new(args[0]), args[1]);
    let below = project.join("below");
    fs::create_dir(&below).unwrap();
    std::env::set_current_dir(project).unwrap();
    report.tried("chroot", call!(libc::SYS_chroot, &text(&below)));
    for _ in 0..64 {
        std::env::set_current_dir("..").unwrap();
    }
    report.tried("chroot to the top", call!(libc::SYS_chroot, c"."));
    report.read("the canary", fs::read(canary));
}

/// Reaches for a file of the host through the doors in `/proc`.
fn proc_root(args: &[&str], report: &mut Report) {
    let canary = args[0];
    let parent = rustix::process::getppid().map_or(1, |parent| parent.as_raw_nonzero().get());
    report.read("root of the first process", fs::read(format!("/proc/1/root{canary}")));
    report.read("root of the parent", fs::read(format!("/proc/{parent}/root{canary}")));
    report.read("own root", fs::read(format!("/proc/self/root/..{canary}")));
    let up = "/..".repeat(40);
    report.read("up from here", fs::read(format!("/proc/self/cwd{up}{canary}")));
    report.read("directory of the first process", fs::read(format!("/proc/1/cwd{up}{canary}")));
}
