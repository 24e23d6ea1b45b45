//! One piece of work in a sandbox, and where it stands.

use std::fmt;

use fluffy_sandbox::Template;

use super::limits::Share;

/// A task's number. Numbers are given in the order in which tasks are submitted, and once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// How urgent a task is; the smaller goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// 1: decisions wait for it.
    System = 1,
    /// 2: a model or a person waits for it.
    Urgent = 2,
    /// 3: the work itself: tests, commands, skills.
    Normal = 3,
    /// 4: what can wait for the others.
    Background = 4,
    /// 5: what is done when there is nothing else to do.
    Idle = 5,
}

/// One piece of work in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// What it is called where people look.
    pub name: String,
    /// How urgent it is.
    pub priority: Priority,
    /// The kind of sandbox that it works in.
    pub template: Template,
    /// What has to be completed first.
    pub after: Vec<TaskId>,
    /// How long it works at most, where that is known.
    pub lasts_ms: Option<u64>,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has what it needs but for a seat.
    Queued,
    /// Something that it depends on is not completed yet.
    WaitingDependency,
    /// It works.
    Running,
    /// It was told that it will be paused; it still has its seat.
    Pausing,
    /// It stands still and has no seat.
    Paused,
    /// It is being ended; it still has its seat, unless it was paused.
    Ending,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// These to be completed.
    Dependencies(Vec<TaskId>),
    /// A seat of all: so many are taken.
    Global(usize),
    /// A seat of its kind: so many are taken.
    Kind(Template, usize),
    /// Memory, of which so much is used.
    Memory(Share),
    /// Others that go before it.
    Turn,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Completed,
    /// Not well.
    Failed(Why),
    /// Nobody wants it any more.
    Cancelled,
}

/// Why a task failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// By itself.
    #[error("{0}")]
    Itself(String),
    /// Something that it depends on did.
    #[error("dependency failed: {0}")]
    Dependency(TaskId),
    /// Something that it depends on was cancelled.
    #[error("dependency cancelled: {0}")]
    Withdrawn(TaskId),
    /// Something more urgent needed its seat, and memory was short.
    #[error("ended for task {by}, which is more urgent, as memory is at {at}")]
    Displaced {
        /// For what.
        by: TaskId,
        /// How much memory was used.
        at: Share,
    },
    /// Memory was spent.
    #[error("ended as memory is at {0}")]
    Memory(Share),
    /// Memory was spent for longer than it could wait.
    #[error("not started: memory stays at {0}")]
    NoMemory(Share),
}

/// Why tasks are not taken. Of those submitted together either all are taken or none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its number is not greater than every number before it.
    #[error("task {0} is there already")]
    Twice(TaskId),
    /// It depends on something that nobody submitted, or that ended too long ago.
    #[error("task {task} depends on task {on}, which is not known")]
    Unknown {
        /// Which.
        task: TaskId,
        /// On what.
        on: TaskId,
    },
    /// They wait for each other.
    #[error("tasks wait for each other: {}", shown(.0))]
    Cycle(Vec<TaskId>),
}

fn shown(ids: &[TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Priority {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 5] =
        [Self::System, Self::Urgent, Self::Normal, Self::Background, Self::Idle];

    /// From 1 to 5.
    pub const fn level(self) -> u8 {
        self as u8
    }

    /// Whether it is kept when memory is spent.
    pub const fn is_critical(self) -> bool {
        matches!(self, Self::System | Self::Urgent)
    }

    /// Its level after so long a wait: one better for each full `age_ms`, 2 at best. Level 1 is nobody's but the system's.
    pub const fn aged(self, waited_ms: u64, age_ms: u64) -> u8 {
        const BEST: u8 = Priority::Urgent.level();
        let level = self.level();
        if level <= BEST || age_ms == 0 {
            return level;
        }
        let risen = waited_ms / age_ms;
        if risen >= (level - BEST) as u64 { BEST } else { level - risen as u8 }
    }
}

impl Stage {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::WaitingDependency => "waiting_dependency",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Ending => "ending",
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dependencies(ids) => write!(f, "for task {}", shown(ids)),
            Self::Global(taken) => write!(f, "for a seat: {taken} sandboxes work"),
            Self::Kind(template, taken) => write!(f, "for a seat: {taken} of {template} work"),
            Self::Memory(used) => write!(f, "for memory: {used} is used"),
            Self::Turn => f.write_str("for its turn"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sch_1_who_waits_rises_by_a_level_at_a_time_to_two_at_most() {
        let idle = [0, 99, 100, 200, 300, 10_000].map(|waited| Priority::Idle.aged(waited, 100));
        assert_eq!(idle, [5, 5, 4, 3, 2, 2]);
        assert_eq!(Priority::Normal.aged(u64::MAX, 1), 2);
        assert_eq!(Priority::Urgent.aged(u64::MAX, 1), 2);
        assert_eq!(Priority::Idle.aged(1, 0), 5);
    }

    #[test]
    fn sch_1_the_systems_tasks_are_immune() {
        assert_eq!(Priority::System.aged(u64::MAX, 1), 1);
        for priority in Priority::ALL.into_iter().skip(1) {
            assert!(priority.aged(u64::MAX, 1) > Priority::System.level());
        }
    }
}
