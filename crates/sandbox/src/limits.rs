//! How much a sandbox may use of the machine.

use fluffy_base::{ByteSize, Span};
use serde::{Deserialize, Serialize};

/// What one sandbox may use. Reaching a limit ends that sandbox or refuses it more, never another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all its processes together, its files in memory included.
    pub memory: ByteSize,
    /// Processor time, in thousandths of one core.
    pub cpu: u32,
    /// Processes and threads at a time.
    pub processes: u32,
    /// From start to end, pauses not counted; nothing for a guest that stays, whose answers have a
    /// deadline each.
    pub duration: Option<Span>,
    /// Standard output and standard error, each.
    pub captured: ByteSize,
    /// What it may write to its output volume, and to `/tmp` and its home.
    pub disk: ByteSize,
    /// Files and directories in each of them.
    pub files: u64,
    /// Open files of one process.
    pub open_files: u64,
}

/// What the user's own settings give a kind of job, instead of what its template gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// From start to end, pauses not counted.
    pub time: Span,
    /// Memory of all its processes together.
    pub memory: ByteSize,
    /// Processor time, in thousandths of one core.
    pub cpu: u32,
    /// Processes and threads at a time.
    pub processes: u32,
}

impl UserLimits {
    /// The same with no more than these limits give.
    #[must_use]
    pub fn within(self, most: Limits) -> Self {
        Self {
            time: most.duration.map_or(self.time, |duration| duration.min(self.time)),
            memory: most.memory.min(self.memory),
            cpu: most.cpu.min(self.cpu),
            processes: most.processes.min(self.processes),
        }
    }
}

impl Limits {
    /// The same with what the user's settings give instead.
    #[must_use]
    pub fn with_user(self, user: UserLimits) -> Self {
        let UserLimits { time, memory, cpu, processes } = user;
        Self { duration: Some(time), memory, cpu, processes, ..self }
    }

    /// The smaller of the two in everything: nobody widens what a template gives.
    #[must_use]
    pub fn narrowed_to(self, other: Self) -> Self {
        Self {
            memory: self.memory.min(other.memory),
            cpu: self.cpu.min(other.cpu),
            processes: self.processes.min(other.processes),
            duration: match (self.duration, other.duration) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
            captured: self.captured.min(other.captured),
            disk: self.disk.min(other.disk),
            files: self.files.min(other.files),
            open_files: self.open_files.min(other.open_files),
        }
    }
}

/// A limit that a job ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// It ran too long.
    Duration,
    /// It used too much memory.
    Memory,
    /// It started too many processes or threads.
    Processes,
    /// It printed too much.
    Captured,
    /// It wrote too much to disk.
    Disk,
}
