//! Getting out of the kernel's own confinement, where mounts and namespaces can still be made.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::{Report, by_name};
use crate::sys::{Arg, call, descriptor, text};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("as-root-of-its-own", as_root_of_its_own),
    ("uncover", uncover),
    ("make-writable", make_writable),
    ("outsider", outsider),
    ("signal", signal),
    ("peer", peer),
];

/// Any other attack, as root of a user namespace with mounts of its own.
fn as_root_of_its_own(args: &[&str], report: &mut Report) {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    call!(libc::SYS_unshare, libc::CLONE_NEWUSER | libc::CLONE_NEWNS).expect("namespaces");
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).unwrap();
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).unwrap();
    by_name(args[0])(&args[1..], report);
}

/// Takes away what covers a directory, or looks beneath it: the directory, a file in it, and a place to mount on.
fn uncover(args: &[&str], report: &mut Report) {
    let (covered, secret, place) = (Path::new(args[0]), args[1], Path::new(args[2]));
    let above = covered.parent().unwrap();
    let name = covered.file_name().unwrap();
    let on = |name: &str| {
        let path = place.join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let look = |at: &Path| fs::read(at.join(secret));
    let bare = descriptor(call!(libc::SYS_open_tree, libc::AT_FDCWD, &text(above), 1));
    let bare = bare.and_then(|tree| {
        let path = format!("/proc/self/fd/{}", tree.as_raw_fd());
        look(&Path::new(&path).join(name))
    });
    report.read("a copy without what is mounted", bare);
    let bind = on("bind");
    let bound = mount(above, &bind, None, libc::MS_BIND, None);
    report.read("a bind without what is mounted", bound.and_then(|_| look(&bind.join(name))));
    let overlay = on("overlay");
    let options = format!("lowerdir={}:{}", above.display(), on("low").display());
    let laid = mount(Path::new("overlay"), &overlay, Some("overlay"), 0, Some(&options));
    report.read("an overlay of what is below", laid.and_then(|_| look(&overlay.join(name))));
    let deep = on("deep");
    let bound = mount(above, &deep, None, libc::MS_BIND | libc::MS_REC, None)
        .and_then(|_| call!(libc::SYS_umount2, &text(deep.join(name)), libc::MNT_DETACH));
    report.read("a bind, and the cover taken off it", bound.and_then(|_| look(&deep.join(name))));
    let aside = on("aside");
    let moved = mount(covered, &aside, None, libc::MS_MOVE, None);
    let is_aside = moved.is_ok();
    report.read("the cover moved aside", moved.and_then(|_| look(covered)));
    if is_aside {
        mount(&aside, covered, None, libc::MS_MOVE, None)
            .expect("what was moved can be moved back");
    }
    let taken = call!(libc::SYS_umount2, &text(covered), libc::MNT_DETACH);
    report.read("the cover taken off", taken.and_then(|_| look(covered)));
}

fn mount(
    from: &Path,
    to: &Path,
    kind: Option<&str>,
    flags: u64,
    options: Option<&str>,
) -> io::Result<i64> {
    let (kind, options) = (kind.map(text), options.map(text));
    let kind = kind.as_ref().map_or(Arg::Null, Arg::from);
    let options = options.as_ref().map_or(Arg::Null, Arg::from);
    call!(libc::SYS_mount, &text(from), &text(to), kind, flags, options)
}

/// Makes directories writable that are not: `label=path`.
fn make_writable(args: &[&str], report: &mut Report) {
    let mut attributes = [0_u8; 32];
    attributes[8] = 1;
    for (label, path) in super::pairs(args) {
        let path = text(path);
        let at = libc::AT_FDCWD;
        let set = call!(libc::SYS_mount_setattr, at, &path, 0, &attributes, 32);
        report.tried(&format!("{label} by attributes"), set);
        let remount = libc::MS_REMOUNT | libc::MS_BIND;
        let again = call!(libc::SYS_mount, c"none", &path, Arg::Null, remount, Arg::Null);
        report.tried(&format!("{label} mounted again"), again);
    }
}

/// Reaches for a process that is none of its own, by number.
fn outsider(args: &[&str], report: &mut Report) {
    let pid: i32 = args[0].parse().unwrap();
    report.read("environment", fs::read(format!("/proc/{pid}/environ")));
    report.tried("root", fs::read_dir(format!("/proc/{pid}/root/")));
    report.tried("descriptor", fs::read_link(format!("/proc/{pid}/fd/0")));
    report.tried("memory", File::open(format!("/proc/{pid}/mem")));
    for kind in ["user", "mnt"] {
        let door = File::open(format!("/proc/{pid}/ns/{kind}"));
        report.tried(&format!("{kind} namespace"), door);
    }
    report.tried("trace", call!(libc::SYS_ptrace, libc::PTRACE_SEIZE, pid, 0, 0));
    let handle = descriptor(call!(libc::SYS_pidfd_open, pid, 0));
    let taken = handle.and_then(|fd| call!(libc::SYS_pidfd_getfd, fd.as_raw_fd(), 0, 0));
    report.tried("take a descriptor", taken.and_then(|fd| descriptor(Ok(fd))));
    let none = call!(libc::SYS_prlimit64, pid, libc::RLIMIT_CORE, &[0_u8; 16], Arg::Null);
    report.tried("limits", none);
}

/// Sends a process that is none of its own a signal, both by number: 0 asks whether it could.
fn signal(args: &[&str], report: &mut Report) {
    let (pid, number): (i32, i32) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let handle = descriptor(call!(libc::SYS_pidfd_open, pid, 0));
    let sent = handle
        .and_then(|fd| call!(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), number, Arg::Null, 0));
    report.tried("by handle", sent);
    report.tried("by number", call!(libc::SYS_kill, pid, number));
}

/// Listens, and says who came.
fn peer(args: &[&str], report: &mut Report) {
    let (client, _) = UnixListener::bind(args[0]).unwrap().accept().unwrap();
    let who = rustix::net::sockopt::socket_peercred(&client).unwrap();
    report.said("user", who.uid.as_raw().to_string());
    report.said("process", who.pid.as_raw_nonzero().to_string());
}
