//! What is there before and must be there after.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A directory for the driver and for projects, with a word that no other process has among its arguments.
pub(crate) struct Place {
    dir: TempDir,
    token: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir =
            tempfile::Builder::new().prefix("fluffy-endurance-").tempdir_in("/var/tmp").unwrap();
        let token = format!("token-{}", dir.path().file_name().unwrap().to_str().unwrap());
        fs::create_dir(dir.path().join("project")).unwrap();
        fs::write(dir.path().join("project/file"), "file\n").unwrap();
        Self { dir, token }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Processes of this machine that have the word among their arguments.
    pub(crate) fn processes(&self) -> Vec<String> {
        let own = std::process::id().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| *name != own)
            .filter_map(|name| fs::read(format!("/proc/{name}/cmdline")).ok())
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains(&self.token))
            .collect()
    }

    /// What lies in the driver's directory.
    pub(crate) fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.state()) else { return Vec::new() };
        entries.flatten().map(|entry| entry.path().display().to_string()).collect()
    }
}

/// How much of this machine is in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    mounts: usize,
    descriptors: usize,
    /// Of each child, its descriptors.
    children: Vec<usize>,
    /// Control groups of the driver's instances that lie in this directory.
    groups: BTreeSet<PathBuf>,
}

impl Counted {
    /// What is in use now. Other tests have groups of their own: those of these instances count.
    pub(crate) fn now(instances: &[String]) -> Self {
        let own = std::process::id();
        let children = children_of(own);
        let mut groups = BTreeSet::new();
        find_groups(Path::new("/sys/fs/cgroup"), instances, &mut groups);
        Self {
            mounts: mounts(),
            descriptors: descriptors_of("self"),
            children: children.iter().map(|child| descriptors_of(child)).collect(),
            groups,
        }
    }
}

/// How much is mounted. Engines, which other tests use meanwhile, mount in places of their own.
fn mounts() -> usize {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = all.lines().filter_map(|line| line.split(' ').nth(4));
    let theirs = ["/fluffy-engine", "/fl-eng-", "/netns/"];
    points.filter(|point| !theirs.iter().any(|part| point.contains(part))).count()
}

/// The children of a process, whichever of its threads started them.
pub(crate) fn children_of(process: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn descriptors_of(process: &str) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

fn find_groups(top: &Path, instances: &[String], found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(top) else { return };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if instances.iter().any(|instance| name.starts_with(&format!("fluffy-{instance}-"))) {
            found.insert(entry.path());
        }
        find_groups(&entry.path(), instances, found);
    }
}

/// The network namespaces that the operating system keeps, whoever holds them; only root may know.
pub(crate) fn networks() -> Option<u64> {
    let slabs = fs::read_to_string("/proc/slabinfo").ok()?;
    let line = slabs.lines().find(|line| line.starts_with("net_namespace "))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until there are no more network namespaces than before, up to what other tests have at a time: the
/// operating system takes them away by and by.
pub(crate) fn wait_for_networks(before: Option<u64>) {
    const OTHERS: u64 = 100;
    let begin = Instant::now();
    while let (Some(before), Some(now)) = (before, networks())
        && now > before + OTHERS
    {
        let late = begin.elapsed() > Duration::from_secs(20);
        assert!(!late, "{before} network namespaces have become {now}");
        std::thread::yield_now();
    }
}
