//! Reading what is nobody's business inside.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;

use super::{Report, pairs};
use crate::sys;

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("read", read),
    ("environment", environment),
    ("environments", environments),
    ("descriptors", descriptors),
    ("surroundings", surroundings),
    ("process-list", process_list),
    ("told-by-the-kernel", told_by_the_kernel),
];

/// Reads each file, or lists it.
fn read(args: &[&str], report: &mut Report) {
    for (label, path) in pairs(args) {
        let content = fs::read(path).or_else(|error| match fs::read_dir(path) {
            Ok(names) => {
                let names: Vec<_> = names.flatten().map(|name| name.file_name()).collect();
                Ok(format!("{names:?}").into_bytes())
            }
            Err(_) => Err(error),
        });
        report.read(label, content);
    }
}

/// Its own environment.
fn environment(_args: &[&str], report: &mut Report) {
    let mut foreign: Vec<String> = Vec::new();
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        report.found.push(format!("{name}={value}"));
        if name.starts_with("FAKE_") || name == "SSH_AUTH_SOCK" || name == "DOCKER_HOST" {
            foreign.push(name.into_owned());
        }
    }
    foreign.sort();
    report.said(
        "the caller's variables",
        if foreign.is_empty() { "none".into() } else { foreign.join(" ") },
    );
}

/// Other processes' environments and command lines.
fn environments(_args: &[&str], report: &mut Report) {
    let own = std::process::id();
    let mut readable = 0;
    for pid in pids().filter(|pid| *pid != own) {
        if let Ok(bytes) = fs::read(format!("/proc/{pid}/environ")) {
            readable += 1;
            report.found.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    report.said("readable", if readable == 0 { "none" } else { "some" });
    report.tried("of the first process", fs::File::open("/proc/1/environ"));
    report.tried("memory map of the first process", fs::read("/proc/1/maps").and_then(not_empty));
}

fn not_empty(bytes: Vec<u8>) -> std::io::Result<()> {
    if bytes.is_empty() { Err(std::io::Error::from_raw_os_error(libc::EACCES)) } else { Ok(()) }
}

fn pids() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|name| name.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// What is open beyond the three streams, and where it leads.
fn descriptors(_args: &[&str], report: &mut Report) {
    let list = fs::File::open("/proc/self/fd").unwrap();
    let mut open: Vec<String> = Vec::new();
    for fd in 3..4096 {
        // The list itself is ours.
        if fd == list.as_raw_fd() {
            continue;
        }
        if let Ok(target) = fs::read_link(format!("/proc/self/fd/{fd}")) {
            open.push(String::from_utf8_lossy(target.as_os_str().as_bytes()).into_owned());
            // A pipe would keep us waiting.
            let path = format!("/proc/self/fd/{fd}");
            if !fs::metadata(&path).is_ok_and(|found| found.is_file()) {
                continue;
            }
            if let Ok(bytes) = fs::read(path) {
                report.found.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    report.said("beyond the streams", if open.is_empty() { "none".into() } else { open.join(" ") });
}

/// What it inherits that is no descriptor: ignored and blocked signals, the umask, limits.
fn surroundings(_args: &[&str], report: &mut Report) {
    let ignored: Vec<i32> = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGTERM, libc::SIGINT]
        .into_iter()
        // The runtime of this language ignores SIGPIPE itself, before this runs.
        .filter(|signal| *signal != libc::SIGPIPE && sys::is_ignored(*signal))
        .collect();
    report.said(
        "ignored signals",
        if ignored.is_empty() { "none".into() } else { format!("{ignored:?}") },
    );
    report.said("blocked signals", status("SigBlk"));
    report.said("umask", status("Umask"));
    let (_, hard) = sys::limit(libc::RLIMIT_NOFILE);
    let mut more = [0_u8; 16];
    more[8..].copy_from_slice(&(hard + 1).to_ne_bytes());
    report.tried("raise a hard limit", sys::call!(libc::SYS_setrlimit, libc::RLIMIT_NOFILE, &more));
    let (core, _) = sys::limit(libc::RLIMIT_CORE);
    report.said("core dumps", if core == 0 { "none" } else { "some" });
}

/// One line of this process's status.
pub(super) fn status(name: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map_or_else(|| "unknown".to_owned(), |value| value.trim().to_owned())
}

/// Reads what the kernel tells about the machine.
fn told_by_the_kernel(args: &[&str], report: &mut Report) {
    for path in args {
        let answer = match fs::read(path) {
            Ok(bytes) if bytes.is_empty() => "nothing".to_owned(),
            Ok(_) => "something".to_owned(),
            Err(error) => sys::name(&error),
        };
        report.said(path, answer);
    }
}

/// Whether a process that is none of its business can be seen.
fn process_list(args: &[&str], report: &mut Report) {
    let stranger: u32 = args[0].parse().unwrap();
    report
        .said("the stranger", if pids().any(|pid| pid == stranger) { "seen" } else { "not seen" });
}
