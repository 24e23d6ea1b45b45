//! A group of the kernel's own in every hierarchy, in which it makes those of its sandboxes.
//!
//! A confined kernel sees no group but this one, which is the top of its namespace of control groups; whoever it is then
//! owns it and what is made in it, and nothing above.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, chown};

use super::find::Version;
use super::{Groups, files};

/// How the names of these groups begin; behind it stands the number of the process that made it.
const PREFIX: &str = "fluffy-kernel-";

/// Where the kernel itself is in a hierarchy of version 2: a group with members gives its children no controllers.
const LEAF: &str = "kernel";

/// The files by which a group is managed by whoever owns them.
const OWNED: [&str; 4] = ["cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"];

/// The controllers of version 2 that are handed down.
const HANDED_DOWN: [&str; 3] = ["memory", "pids", "cpu"];

/// The kernel's own groups.
#[derive(Debug, Default)]
pub(crate) struct Nest {
    groups: Vec<Own>,
}

#[derive(Debug)]
struct Own {
    version: Version,
    mount: PathBuf,
    path: PathBuf,
}

impl Nest {
    /// Makes the groups for this owner, where groups can be made, and enters them. What cannot be had is said in a
    /// note; what kernels left that are gone is taken away.
    pub(crate) fn enter(groups: &Groups, owner: Option<(u32, u32)>) -> (Self, Vec<String>) {
        let (mut nest, mut notes) = (Self::default(), Vec::new());
        for hierarchy in &groups.hierarchies {
            sweep(&hierarchy.parent);
            let path = hierarchy.parent.join(format!("{PREFIX}{}", std::process::id()));
            let (version, mount) = (hierarchy.version, hierarchy.mount.clone());
            let own = Own { version, mount, path };
            match own.make(owner).and_then(|()| own.enter()) {
                Ok(()) => nest.groups.push(own),
                Err(error) => {
                    // The next kernel takes it away if this does not.
                    drop(fs::remove_dir(&own.path));
                    notes.push(format!("no control group `{}`: {error}", own.path.display()));
                }
            }
        }
        (nest, notes)
    }

    /// Hands controllers down, once this process has a namespace with these groups as its top.
    pub(crate) fn settle(&self) -> io::Result<()> {
        self.groups.iter().try_for_each(Own::settle)
    }

    /// Each group, and where its hierarchy is mounted.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.groups.iter().map(|own| (own.path.as_path(), own.mount.as_path()))
    }
}

impl Own {
    fn make(&self, owner: Option<(u32, u32)>) -> io::Result<()> {
        fs::create_dir(&self.path)?;
        let Some((uid, gid)) = owner else { return Ok(()) };
        let give = |path: &Path| chown(path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        give(&self.path)?;
        for name in OWNED {
            match give(&self.path.join(name)) {
                // Each version has some of them.
                Err(rustix::io::Errno::NOENT) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn enter(&self) -> io::Result<()> {
        let door = match self.version {
            // A single thread enters by this one, for which nobody has to be halted.
            Version::One => "tasks",
            Version::Two => "cgroup.procs",
        };
        files::set(&self.path.join(door), "0")
    }

    fn settle(&self) -> io::Result<()> {
        if self.version == Version::One {
            return Ok(());
        }
        let leaf = self.path.join(LEAF);
        fs::create_dir(&leaf)?;
        files::set(&leaf.join("cgroup.procs"), "0")?;
        let has = fs::read_to_string(self.path.join("cgroup.controllers"))?;
        let handed: Vec<String> = HANDED_DOWN
            .iter()
            .filter(|name| has.split_whitespace().any(|has| has == **name))
            .map(|name| format!("+{name}"))
            .collect();
        if handed.is_empty() {
            return Ok(());
        }
        files::set(&self.path.join("cgroup.subtree_control"), &handed.join(" "))
    }
}

/// Takes away the groups of kernels that are gone. A group that somebody is in cannot be removed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let maker = maker(&entry.file_name());
        let is_gone = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
        if maker.is_some_and(is_gone) {
            remove(&entry.path());
        }
    }
}

/// The process that made a group, by the group's name.
fn maker(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

fn remove(group: &Path) {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    for inner in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        // What is in it: sandboxes' groups, and the kernel's leaf; no deeper.
        drop(fs::remove_dir(inner.path()));
    }
    drop(fs::remove_dir(group));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_group_says_who_made_it() {
        assert_eq!(maker(OsStr::new("fluffy-kernel-12")), Some(12));
        for other in ["fluffy-kernel-", "fluffy-kernel-12-1", "fluffy-12", "fluffy-kernel--1"] {
            assert_eq!(maker(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn groups_of_kernels_that_are_gone_are_taken_away_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}", std::process::id());
        // No process has this number: it is above every limit.
        let gone = format!("{PREFIX}{}", u32::MAX);
        for name in [own.as_str(), "user.slice", &gone, &format!("{gone}/{LEAF}")] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        sweep(dir.path());
        assert!(!dir.path().join(gone).exists());
        assert!(dir.path().join(own).exists() && dir.path().join("user.slice").exists());
    }
}
