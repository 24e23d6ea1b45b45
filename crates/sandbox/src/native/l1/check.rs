//! What must hold before the kernel is confined, and what must hold after.

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use crate::native::init::{Broken, Step as _};
use crate::native::payload::all_is_given_up;

use super::L1Error;
use super::layout::{Layout, SECRETS};

/// The namespaces that the kernel has of its own. Those of processes and of the network stay the machine's: the kernel
/// has to know who its clients are, and its proxy has to reach the network.
pub(super) const NAMESPACES: [&str; 5] = ["cgroup", "ipc", "mnt", "user", "uts"];

/// Whether this process has one thread, and nothing open but what may be.
pub(super) fn alone(keep: &[RawFd]) -> Result<(), L1Error> {
    let threads = status("Threads:").unwrap_or_default();
    if threads != "1" {
        return Err(L1Error::Threads(threads));
    }
    for (fd, target) in open() {
        let standard = (0..=2).contains(&fd) && !target.is_dir();
        if !standard && !keep.contains(&fd) {
            return Err(L1Error::Open { fd, target });
        }
    }
    Ok(())
}

/// What is open, and where it leads.
fn open() -> Vec<(RawFd, PathBuf)> {
    let Ok(list) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let fds = list.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let fds: Vec<RawFd> = fds.collect();
    // The list itself is closed by now.
    fds.into_iter()
        .filter_map(|fd| Some((fd, fs::read_link(format!("/proc/self/fd/{fd}")).ok()?)))
        .collect()
}

/// The namespaces of the machine.
pub(super) struct Outside(Vec<PathBuf>);

impl Outside {
    pub(super) fn look() -> Result<Self, Broken> {
        Ok(Self(namespaces()?))
    }

    /// Refuses to go on if anything is not as it should be.
    pub(super) fn is_left(
        &self,
        layout: &Layout,
        writable: &[PathBuf],
        uid: u32,
    ) -> Result<(), L1Error> {
        all_is_given_up().map_err(|broken| wrong(&broken.step))?;
        let own = namespaces().map_err(|broken| wrong(&broken.step))?;
        if let Some(same) = own.iter().zip(&self.0).find(|(own, outside)| own == outside) {
            return Err(wrong(&format!("`{}` is the machine's", same.0.display())));
        }
        let users = format!("{uid}\t{uid}\t{uid}\t{uid}");
        if uid == 0 || status("Uid:").as_deref() != Some(users.as_str()) {
            return Err(wrong("it is somebody else"));
        }
        mounts_are_read_only(writable)?;
        secrets_are_gone(layout)
    }
}

/// Refuses to go on if what an engine built, and what was added, is not as it should be.
pub(super) fn is_contained(layout: &Layout, neighbour: u32) -> Result<(), L1Error> {
    all_is_given_up().map_err(|broken| wrong(&broken.step))?;
    if rustix::process::geteuid().is_root() {
        return Err(wrong("it is root"));
    }
    let root = rustix::fs::statvfs("/").map_err(|_| wrong("its root cannot be looked at"))?;
    if !root.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return Err(wrong("its root can be written"));
    }
    // Who stands outside is not entered through the directory of their process.
    for part in ["root", "environ"] {
        let looked = fs::File::open(format!("/proc/{neighbour}/{part}"));
        if looked.map_err(|error| error.kind()).err() != Some(io::ErrorKind::PermissionDenied) {
            return Err(wrong("another process can be looked into"));
        }
    }
    secrets_are_gone(layout)
}

fn namespaces() -> Result<Vec<PathBuf>, Broken> {
    let names = NAMESPACES.iter();
    names
        .map(|name| fs::read_link(format!("/proc/self/ns/{name}")).step("checking the namespaces"))
        .collect()
}

/// Every mount is read-only, those that are covered included, but for those that may be written.
fn mounts_are_read_only(writable: &[PathBuf]) -> Result<(), L1Error> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut any = false;
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(4);
        let (Some(at), Some(options)) = (words.next(), words.next()) else {
            return Err(wrong("its mounts cannot be read"));
        };
        let at = PathBuf::from(unescaped(at));
        any = true;
        if options.split(',').any(|option| option == "rw") && !is_for_writing(&at, writable) {
            return Err(wrong(&format!("`{}` can be written", at.display())));
        }
    }
    if any { Ok(()) } else { Err(wrong("its mounts cannot be read")) }
}

/// What is mounted in a project may be written as well; what is mounted in the processes' directory may not.
fn is_for_writing(at: &Path, writable: &[PathBuf]) -> bool {
    writable.iter().any(|path| at == path || (path != Path::new("/proc") && at.starts_with(path)))
}

fn secrets_are_gone(layout: &Layout) -> Result<(), L1Error> {
    let Some(home) = &layout.home else { return Ok(()) };
    for name in SECRETS {
        let path = home.join(name);
        let is_shown = layout.places.iter().any(|place| path.starts_with(&place.path));
        if !is_shown && path.symlink_metadata().is_ok() {
            return Err(wrong(&format!("`{}` is there", path.display())));
        }
    }
    Ok(())
}

/// Octal escapes stand for white space and back slashes in paths.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

fn status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

fn wrong(what: &str) -> L1Error {
    L1Error::Check(what.to_owned())
}
