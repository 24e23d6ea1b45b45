//! How much of the memory is used: of the machine's, and of what the kernel's own control groups may have.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::limits::Share;

/// Something that knows how much memory is used. It is asked a few times a second, and answers at once.
pub trait Memory: Send + Sync {
    /// How much of it is used.
    fn used(&self) -> Share;
}

/// The memory of this machine, or of the group in which the kernel runs, whichever is shorter. What cannot be read is taken
/// not to be short: sandboxes have limits of their own.
#[derive(Debug)]
pub struct MachineMemory {
    machine: Option<File>,
    groups: Vec<Group>,
}

/// A control group with a limit.
#[derive(Debug)]
struct Group {
    used: PathBuf,
    stat: PathBuf,
    limit: u64,
}

impl MachineMemory {
    /// The memory of this machine.
    pub fn open() -> Self {
        let machine = File::open("/proc/meminfo").ok();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self { machine, groups: groups(&own, Path::new("/sys/fs/cgroup")) }
    }

    fn machine(&self) -> Option<Share> {
        let mut text = [0; 512];
        let read = self.machine.as_ref()?.read_at(&mut text, 0).ok()?;
        of_machine(std::str::from_utf8(text.get(..read)?).ok()?)
    }
}

impl Memory for MachineMemory {
    fn used(&self) -> Share {
        let groups = self.groups.iter().filter_map(Group::used);
        groups.chain(self.machine()).max().unwrap_or_default()
    }
}

impl Group {
    fn used(&self) -> Option<Share> {
        let used: u64 = fs::read_to_string(&self.used).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(&self.stat).unwrap_or_default();
        // Pages of files that nobody used lately are given back for the asking.
        let idle = field(&stat, "total_inactive_file").or_else(|| field(&stat, "inactive_file"));
        Some(Share::of(used.saturating_sub(idle.unwrap_or_default()), self.limit))
    }
}

/// The groups of a process that have a limit, out of what `/proc/self/cgroup` says: its own, and all around it.
fn groups(own: &str, mount: &Path) -> Vec<Group> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(parts_of), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, used, limit) = match parts_of {
            "" => (mount.to_owned(), "memory.current", "memory.max"),
            it if it.split(',').any(|it| it == "memory") => {
                (mount.join("memory"), "memory.usage_in_bytes", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let inside = Path::new(path.trim_start_matches('/'));
        for dir in inside.ancestors().map(|dir| root.join(dir)) {
            let said = fs::read_to_string(dir.join(limit)).unwrap_or_default();
            // Without a limit there is a word, or a number larger than any machine.
            let Some(limit) = said.trim().parse().ok().filter(|limit| *limit < 1 << 60) else {
                continue;
            };
            found.push(Group { used: dir.join(used), stat: dir.join("memory.stat"), limit });
        }
    }
    found
}

/// How much a machine uses, out of what `/proc/meminfo` says.
fn of_machine(text: &str) -> Option<Share> {
    let (total, available) = (field(text, "MemTotal:")?, field(text, "MemAvailable:")?);
    Some(Share::of(total.saturating_sub(available), total))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(name))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_uses_is_what_it_could_not_give() {
        let text = "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    250 kB\n";
        assert_eq!(of_machine(text), Some(Share(75)));
        assert_eq!(of_machine("MemTotal: 1000 kB\n"), None);
        assert_eq!(of_machine("MemTotal: x kB\nMemAvailable: 1 kB\n"), None);
    }

    #[test]
    fn the_limit_of_any_group_around_the_kernel_counts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            #[expect(clippy::disallowed_methods, reason = "a group made of files, for this test")]
            fs::write(path, text).unwrap();
        };
        put("a/memory.max", "1000\n");
        put("a/memory.current", "900\n");
        put("a/memory.stat", "anon 1\ninactive_file 100\n");
        put("a/b/memory.max", "max\n");
        put("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        let found = groups("0::/a/b\n5:cpu,memory:/c\n3:pids:/d\nnonsense\n", dir.path());
        let used: Vec<_> = found.iter().map(Group::used).collect();
        assert_eq!(used, [Some(Share(80))]);
        put("memory/c/memory.limit_in_bytes", "4000\n");
        put("memory/c/memory.usage_in_bytes", "2000\n");
        put("memory/c/memory.stat", "inactive_file 1000\ntotal_inactive_file 0\n");
        let memory = MachineMemory { machine: None, groups: groups("5:memory:/c", dir.path()) };
        assert_eq!(memory.used(), Share(50));
    }

    #[test]
    fn this_machine_says_how_much_it_uses() {
        assert!(MachineMemory::open().machine().is_some());
    }
}
