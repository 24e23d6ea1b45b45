//! Control groups: how much of the machine a sandbox may use, and how all of it is halted or killed.
//!
//! [`Groups`] knows where this process may make groups: in the one hierarchy of version 2, in the many of
//! version 1, or in both, as a machine with one foot in each has it. A [`Group`] is one directory of the
//! same name in each that is needed, with its limits set before anybody is in it.
//!
//! **Invariant.** What cannot be had is [`Missing`] and said so; a controller that is there but takes no
//! limit is an error, never a group without that limit.

mod files;
mod find;
mod group;
mod nest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use self::find::{Mount, Version};
pub(crate) use self::group::{Entrances, Group, Used};
pub(crate) use self::nest::Nest;
use crate::limits::Limits;

/// How deep groups of killed kernels are looked for.
const DEEPEST: usize = 16;

/// What a group is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The memory limit.
    Memory,
    /// The limit of processes.
    Processes,
    /// The share of processor time.
    Cpu,
    /// Halting everything.
    Freezer,
    /// Counting processor time.
    Accounting,
}

/// Where groups can be made.
#[derive(Debug)]
pub(crate) struct Groups {
    hierarchies: Vec<Hierarchy>,
    missing: Vec<Missing>,
}

/// A tree of groups, and the place in it where ours are made.
#[derive(Debug)]
struct Hierarchy {
    version: Version,
    mount: PathBuf,
    parent: PathBuf,
    parts: Vec<Part>,
}

/// A part that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Which.
    pub(crate) part: Part,
    /// Why.
    pub(crate) why: String,
}

/// What a sweep took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stale {
    /// Groups that are gone.
    pub(crate) groups: usize,
    /// Processes that were still in them.
    pub(crate) processes: usize,
    /// Groups that could not be taken away.
    pub(crate) left: usize,
}

/// Why a group does not do what it was told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GroupError {
    /// A group's name is one plain word.
    #[error("`{0}` cannot be the name of a control group")]
    Name(String),
    /// The machine has no such part.
    #[error("control groups offer no {0} here")]
    Missing(Part),
    /// The kernel refused.
    #[error("control group `{}`: {what} failed", path.display())]
    Refused {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It was asked for and did not happen.
    #[error("control group `{}` does not come to {what}", path.display())]
    Stuck {
        /// What was waited for.
        what: &'static str,
        /// In which group.
        path: PathBuf,
    },
}

impl Groups {
    /// Where this process may make groups.
    pub(crate) fn here() -> io::Result<Self> {
        let own = fs::read("/proc/self/cgroup")?;
        let mounts = fs::read("/proc/self/mountinfo")?;
        Ok(Self::find(&String::from_utf8_lossy(&own), &String::from_utf8_lossy(&mounts)))
    }

    /// The same from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`. Tries to make a group
    /// in each place.
    pub(crate) fn find(own: &str, mountinfo: &str) -> Self {
        let mounts = find::mounts(own, mountinfo);
        let mut groups = Self { hierarchies: Vec::new(), missing: Vec::new() };
        let mut refusals = BTreeMap::new();
        // Version 2 first: what it can halt it can also kill, in one stroke.
        for mount in mounts.iter().filter(|mount| mount.version == Version::Two) {
            groups.add(find::two(mount), mount, &mut refusals);
        }
        for mount in mounts.iter().filter(|mount| mount.version == Version::One) {
            groups.add(find::one(mount), mount, &mut refusals);
        }
        for part in Part::ALL {
            if !groups.has(part) {
                let why = refusals.remove(&part);
                let why = why.unwrap_or_else(|| "the kernel offers it nowhere".to_owned());
                groups.missing.push(Missing { part, why });
            }
        }
        groups
    }

    /// The groups of a process that somebody else put there, to be read.
    pub(crate) fn of_process(pid: u32) -> io::Result<Group> {
        let own = fs::read(format!("/proc/{pid}/cgroup"))?;
        let mounts = fs::read("/proc/self/mountinfo")?;
        let mut group = Group::default();
        let mut known: Vec<Part> = Vec::new();
        for mount in find::mounts(&String::from_utf8_lossy(&own), &String::from_utf8_lossy(&mounts))
        {
            let parts = find::read_parts(&mount);
            let parts: Vec<Part> = parts.into_iter().filter(|part| !known.contains(part)).collect();
            known.extend(&parts);
            if let Some(path) = mount.own.filter(|_| !parts.is_empty()) {
                group.add(path, mount.version, parts);
            }
        }
        Ok(group)
    }

    /// What cannot be had, and why.
    pub(crate) fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Whether a part can be had.
    pub(crate) fn has(&self, part: Part) -> bool {
        self.hierarchies.iter().any(|hierarchy| hierarchy.parts.contains(&part))
    }

    /// Makes a group with these limits and nobody in it. If that fails, nothing of it is left.
    pub(crate) fn create(&self, name: &str, limits: &Limits) -> Result<Group, GroupError> {
        if !plain(name) {
            return Err(GroupError::Name(name.to_owned()));
        }
        let mut group = Group::default();
        let made = self.hierarchies.iter().try_for_each(|hierarchy| {
            let path = hierarchy.parent.join(name);
            fs::create_dir(&path).map_err(|source| GroupError::Refused {
                what: "making it",
                path: path.clone(),
                source,
            })?;
            group.add(path, hierarchy.version, hierarchy.parts.clone());
            Ok(())
        });
        match made.and_then(|()| group.limit(limits)) {
            Ok(()) => Ok(group),
            Err(error) => {
                // What could not be set up has nobody in it; the first error says more than a second.
                drop(group.remove());
                Err(error)
            }
        }
    }

    /// Kills and removes every group whose name begins like this, wherever in the hierarchies it is: a
    /// kernel that was killed need not have been where this one is. Whose groups these are is for the
    /// caller to know; nobody is asked.
    pub(crate) fn remove_stale(&self, prefix: &str) -> Stale {
        let mut stale = Stale::default();
        if !plain(prefix) {
            return stale;
        }
        let mut found: BTreeMap<OsString, Group> = BTreeMap::new();
        for hierarchy in &self.hierarchies {
            for path in find::groups_named(&hierarchy.mount, prefix, DEEPEST) {
                let name = path.file_name().unwrap_or_default().to_owned();
                let parts = hierarchy.parts.clone();
                found.entry(name).or_default().add(path, hierarchy.version, parts);
            }
        }
        for group in found.values() {
            stale.processes = stale.processes.saturating_add(group.members().len());
            match group.kill().and_then(|()| group.remove()) {
                Ok(()) => stale.groups = stale.groups.saturating_add(1),
                Err(_) => stale.left = stale.left.saturating_add(1),
            }
        }
        stale
    }

    /// Takes what a mount offers, as far as nothing offered it before.
    fn add(
        &mut self,
        offer: Result<find::Offer, find::Refusal>,
        mount: &Mount,
        refusals: &mut BTreeMap<Part, String>,
    ) {
        let refused = match offer {
            Ok(find::Offer { parent, parts, refused }) => {
                let parts: Vec<Part> = parts.into_iter().filter(|part| !self.has(*part)).collect();
                if !parts.is_empty() {
                    let (version, mount) = (mount.version, mount.at.clone());
                    self.hierarchies.push(Hierarchy { version, mount, parent, parts });
                }
                refused
            }
            Err(refused) => Some(refused),
        };
        if let Some(find::Refusal { parts, why }) = refused {
            refusals.extend(parts.into_iter().map(|part| (part, why.clone())));
        }
    }
}

impl Part {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Memory, Self::Processes, Self::Cpu, Self::Freezer, Self::Accounting];
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory limit",
            Self::Processes => "limit of processes",
            Self::Cpu => "limit of processor time",
            Self::Freezer => "freezer",
            Self::Accounting => "count of processor time",
        })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}: {}", self.part, self.why)
    }
}

/// Whether a name can be a directory's without leading elsewhere or being one of the kernel's files.
fn plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 200 && name.chars().all(fits)
}

/// A path under a mount as it is, or nothing if it leads out of it.
fn below(mount: &Path, path: &Path) -> Option<PathBuf> {
    let stays = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    stays.then(|| mount.components().chain(path.components()).collect())
}
