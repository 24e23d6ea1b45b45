//! One group: its limits, what it has used, and its end.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::find::Version;
use super::{GroupError, Part, files};
use crate::limits::Limits;

/// The slice of time of which a group gets its share, in microseconds.
const PERIOD: u64 = 100_000;

/// How long a halt, or a death, is waited for, in milliseconds.
const PATIENCE: u32 = 5_000;

/// A group of processes: a directory in each hierarchy.
#[derive(Debug, Default)]
pub(crate) struct Group {
    directories: Vec<Directory>,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    version: Version,
    parts: Vec<Part>,
}

/// Whether processes are halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    Halted,
    Running,
}

/// What a group uses and has used, as far as it can be known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Processor time.
    pub(crate) cpu: Option<Duration>,
    /// Memory now, in bytes.
    pub(crate) memory: Option<u64>,
    /// The most memory at a time, in bytes.
    pub(crate) memory_peak: Option<u64>,
    /// Processes and threads now.
    pub(crate) processes: Option<u64>,
    /// Processes that were killed because memory ran out.
    pub(crate) oom_kills: Option<u64>,
    /// Processes and threads that were refused.
    pub(crate) processes_refused: Option<u64>,
}

/// The ways into a group. Moving a process from outside, or with all its threads, makes the kernel wait for a moment
/// at which nobody forks anywhere, which takes ten milliseconds and more; these do not.
#[derive(Debug, Default)]
pub(crate) struct Entrances {
    /// Of version 1: files into which a process with one thread writes `0`.
    pub(crate) tasks: Vec<OwnedFd>,
    /// Of version 2: the directory, into which a process is born.
    pub(crate) unified: Option<OwnedFd>,
}

impl Group {
    /// One more directory of it.
    pub(super) fn add(&mut self, path: PathBuf, version: Version, parts: Vec<Part>) {
        self.directories.push(Directory { path, version, parts });
    }

    /// Sets the limits.
    pub(super) fn limit(&self, limits: &Limits) -> Result<(), GroupError> {
        for directory in &self.directories {
            for part in &directory.parts {
                directory.limit(*part, limits)?;
            }
        }
        Ok(())
    }

    /// The files into which a process writes its number to enter.
    #[cfg(test)]
    pub(crate) fn join_paths(&self) -> Vec<PathBuf> {
        self.directories.iter().map(|directory| directory.path.join("cgroup.procs")).collect()
    }

    /// The ways in. Whoever has them needs no right to the hierarchies, nor to see them.
    pub(crate) fn entrances(&self) -> io::Result<Entrances> {
        let mut entrances = Entrances::default();
        for directory in &self.directories {
            match directory.version {
                Version::One => {
                    let tasks =
                        fs::OpenOptions::new().write(true).open(directory.path.join("tasks"));
                    entrances.tasks.push(tasks?.into());
                }
                Version::Two => entrances.unified = Some(fs::File::open(&directory.path)?.into()),
            }
        }
        Ok(entrances)
    }

    /// Halts every process, and comes back when they are.
    pub(crate) fn freeze(&self) -> Result<(), GroupError> {
        self.freezer()?.switch(Halt::Halted)
    }

    /// Lets every process go on.
    pub(crate) fn thaw(&self) -> Result<(), GroupError> {
        self.freezer()?.switch(Halt::Running)
    }

    /// Kills every process, frozen or not, and comes back when they are dead.
    pub(crate) fn kill(&self) -> Result<(), GroupError> {
        // Where it can be halted first: whoever is killed there is in no other directory either.
        let (first, rest): (Vec<_>, Vec<_>) =
            self.directories.iter().partition(|directory| directory.freezes());
        let outcomes: Vec<_> = first.into_iter().chain(rest).map(Directory::kill).collect();
        outcomes.into_iter().collect()
    }

    /// What it uses.
    pub(crate) fn usage(&self) -> Used {
        let mut used = Used::default();
        for directory in &self.directories {
            for part in &directory.parts {
                directory.read(*part, &mut used);
            }
        }
        used
    }

    /// Takes it away, with whoever is still in it. May be repeated; each directory is tried even if
    /// another could not be removed.
    pub(crate) fn remove(&self) -> Result<(), GroupError> {
        let outcomes: Vec<_> = self.directories.iter().map(Directory::remove).collect();
        outcomes.into_iter().collect()
    }

    /// The processes in any of its directories.
    pub(crate) fn members(&self) -> BTreeSet<i32> {
        self.directories.iter().flat_map(Directory::members).collect()
    }

    /// Whether it does this.
    pub(crate) fn has(&self, part: Part) -> bool {
        self.directories.iter().any(|directory| directory.parts.contains(&part))
    }

    fn freezer(&self) -> Result<&Directory, GroupError> {
        let mut all = self.directories.iter();
        let freezer = all.find(|directory| directory.freezes());
        freezer.ok_or(GroupError::Missing(Part::Freezer))
    }
}

impl Directory {
    fn limit(&self, part: Part, limits: &Limits) -> Result<(), GroupError> {
        let memory = limits.memory.bytes().to_string();
        // A thousandth of a core is a hundred microseconds of the period; the kernel takes a
        // millisecond at least.
        let quota = u64::from(limits.cpu).saturating_mul(PERIOD / 1000).max(1000);
        match (self.version, part) {
            (Version::One, Part::Memory) => {
                self.set("memory.limit_in_bytes", &memory)?;
                // Memory and swap together; a kernel that does not count swap has no such file.
                if self.path.join("memory.memsw.limit_in_bytes").exists() {
                    self.set("memory.memsw.limit_in_bytes", &memory)?;
                }
                Ok(())
            }
            (Version::Two, Part::Memory) => {
                self.set("memory.max", &memory)?;
                if self.path.join("memory.swap.max").exists() {
                    self.set("memory.swap.max", "0")?;
                }
                self.set("memory.oom.group", "1")
            }
            (Version::One | Version::Two, Part::Processes) => {
                self.set("pids.max", &limits.processes.to_string())
            }
            (Version::One, Part::Cpu) => {
                self.set("cpu.cfs_period_us", &PERIOD.to_string())?;
                self.set("cpu.cfs_quota_us", &quota.to_string())
            }
            (Version::Two, Part::Cpu) => self.set("cpu.max", &format!("{quota} {PERIOD}")),
            (Version::One | Version::Two, Part::Freezer | Part::Accounting) => Ok(()),
        }
    }

    fn read(&self, part: Part, used: &mut Used) {
        let number = |name: &str| files::number(&self.path.join(name));
        let entry = |name: &str, key| files::entry(&self.path.join(name), key);
        match (self.version, part) {
            (Version::One, Part::Memory) => {
                used.memory = number("memory.usage_in_bytes");
                used.memory_peak = number("memory.max_usage_in_bytes");
                used.oom_kills = entry("memory.oom_control", "oom_kill");
            }
            (Version::Two, Part::Memory) => {
                used.memory = number("memory.current");
                used.memory_peak = number("memory.peak");
                used.oom_kills = entry("memory.events", "oom_kill");
            }
            (Version::One | Version::Two, Part::Processes) => {
                used.processes = number("pids.current");
                used.processes_refused = entry("pids.events", "max");
            }
            (Version::One, Part::Accounting) => {
                used.cpu = number("cpuacct.usage").map(Duration::from_nanos);
            }
            (Version::Two, Part::Accounting) => {
                used.cpu = entry("cpu.stat", "usage_usec").map(Duration::from_micros);
            }
            (Version::One | Version::Two, Part::Cpu | Part::Freezer) => {}
        }
    }

    /// Halts or lets go on, and waits for it. What does not come to a halt is let go again.
    fn switch(&self, to: Halt) -> Result<(), GroupError> {
        self.ask(to)?;
        if self.comes_to(to) {
            return Ok(());
        }
        match to {
            Halt::Halted => {
                drop(self.ask(Halt::Running));
                Err(self.stuck("a halt"))
            }
            Halt::Running => Err(self.stuck("life")),
        }
    }

    fn ask(&self, to: Halt) -> Result<(), GroupError> {
        match (self.version, to) {
            (Version::One, Halt::Halted) => self.set("freezer.state", "FROZEN"),
            (Version::One, Halt::Running) => self.set("freezer.state", "THAWED"),
            (Version::Two, Halt::Halted) => self.set("cgroup.freeze", "1"),
            (Version::Two, Halt::Running) => self.set("cgroup.freeze", "0"),
        }
    }

    fn comes_to(&self, to: Halt) -> bool {
        let (word, number) = match to {
            Halt::Halted => ("FROZEN", 1),
            Halt::Running => ("THAWED", 0),
        };
        match self.version {
            Version::Two => {
                let events = self.path.join("cgroup.events");
                files::wait_for_entry(&events, "frozen", number, PATIENCE)
            }
            Version::One => (0..PATIENCE).any(|round| {
                if round > 0 {
                    files::moment();
                    self.insist(to, round);
                }
                // Reading makes the kernel look whether all have halted.
                let now = fs::read_to_string(self.path.join("freezer.state"));
                now.is_ok_and(|now| now.trim() == word)
            }),
        }
    }

    /// Version 1 can miss a process that was just being made, and does not look again by itself: it is asked again,
    /// and now and then lets all go for a moment, so that whoever waits for a missed one moves on.
    fn insist(&self, to: Halt, round: u32) {
        if to == Halt::Halted {
            if round.is_multiple_of(50) {
                drop(self.ask(Halt::Running));
                files::moment();
            }
            drop(self.ask(Halt::Halted));
        }
    }

    fn kill(&self) -> Result<(), GroupError> {
        match fs::symlink_metadata(&self.path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            _ => {}
        }
        let stroke = self.path.join("cgroup.kill");
        if self.version == Version::Two && stroke.exists() {
            self.set("cgroup.kill", "1")?;
            let events = self.path.join("cgroup.events");
            if files::wait_for_entry(&events, "populated", 0, PATIENCE) {
                return Ok(());
            }
        }
        self.kill_each()
    }

    /// Kills one after the other until nobody is left. Halted meanwhile, so that nobody starts another;
    /// then let go, because version 1 lets nobody die who is halted.
    fn kill_each(&self) -> Result<(), GroupError> {
        for _ in 0..PATIENCE {
            if self.members().is_empty() {
                return Ok(());
            }
            // If it does not halt, whoever is started meanwhile is killed in the next round.
            if self.freezes() {
                drop(self.ask(Halt::Halted));
            }
            let killed = self.kill_members();
            if self.freezes() {
                drop(self.ask(Halt::Running));
            }
            if !wait_for_deaths(&killed) {
                files::moment();
            }
        }
        if self.members().is_empty() { Ok(()) } else { Err(self.stuck("an end")) }
    }

    /// Kills those who are in it now. A number may have gone to somebody else since it was read; one that
    /// is still in the group after its process was opened is the group's.
    fn kill_members(&self) -> Vec<OwnedFd> {
        let opened: Vec<(i32, OwnedFd)> = self
            .members()
            .into_iter()
            .filter_map(|number| {
                let process = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
                Some((number, process))
            })
            .collect();
        let still = self.members();
        let ours = opened.into_iter().filter(|(number, _)| still.contains(number));
        ours.map(|(_, process)| process)
            .filter(|process| pidfd_send_signal(process, Signal::KILL).is_ok())
            .collect()
    }

    fn remove(&self) -> Result<(), GroupError> {
        let mut last = None;
        for _ in 0..PATIENCE {
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(()),
                Err(source) => match source.kind() {
                    io::ErrorKind::NotFound => return Ok(()),
                    // Somebody is in it, or has died and not yet left.
                    io::ErrorKind::ResourceBusy => last = Some(source),
                    _ => return Err(self.refused("removing it", &self.path, source)),
                },
            }
            if self.members().is_empty() {
                files::moment();
            } else {
                self.kill()?;
            }
        }
        let source = last.unwrap_or_else(|| io::ErrorKind::ResourceBusy.into());
        Err(self.refused("removing it", &self.path, source))
    }

    /// The processes in it; those of other process namespaces have no number here and are left out.
    fn members(&self) -> BTreeSet<i32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect()
    }

    fn freezes(&self) -> bool {
        self.parts.contains(&Part::Freezer)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), GroupError> {
        let path = self.path.join(name);
        files::set(&path, value).map_err(|source| self.refused("setting it", &path, source))
    }

    fn refused(&self, what: &'static str, path: &Path, source: io::Error) -> GroupError {
        GroupError::Refused { what, path: path.to_owned(), source }
    }

    fn stuck(&self, what: &'static str) -> GroupError {
        GroupError::Stuck { what, path: self.path.clone() }
    }
}

/// Waits until these have ended. Whether there was anybody to wait for.
fn wait_for_deaths(processes: &[OwnedFd]) -> bool {
    for process in processes {
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        files::wait(&mut ended, 100);
    }
    !processes.is_empty()
}
