//! Which process is at the other end, and whether a person sits before it: the kernel looks for itself.
//!
//! **Invariant.** A process is known by its number and its start. A later process of the same number is another
//! one, and a process that cannot be looked at is nobody's: it has no terminal and no token is bound to it.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::sys::{self, NoHandle};

/// The process that connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    /// Its user.
    pub(super) uid: u32,
    /// Its number, 0 where it has none here.
    pub(super) pid: u32,
    /// When it started, in ticks since the system did; nothing where that could not be learned for certain.
    start: Option<u64>,
}

impl Process {
    /// Of whom the socket's other end is.
    pub(super) fn behind(socket: impl AsFd) -> io::Result<Self> {
        let (pid, uid) = sys::peer_credentials(&socket)?;
        let start = Stat::of(pid).map(|stat| stat.start).filter(|_| is_alive(&socket));
        Ok(Self { uid, pid, start })
    }

    /// Whether both are one process. What is not known for certain is not the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.start.is_some() && self == other
    }

    /// Whether it still runs and has a controlling terminal.
    pub(super) fn has_terminal(&self) -> bool {
        let now = Stat::of(self.pid);
        now.is_some_and(|now| Some(now.start) == self.start && now.terminal)
    }
}

/// Whether the one who connected still runs. If so, what was read about its number before is about it and not about
/// a later process of that number. On systems that cannot say, the number is trusted: it would have to be given
/// anew between connecting and this moment.
fn is_alive(socket: impl AsFd) -> bool {
    let process = match sys::peer_process(socket) {
        Ok(process) => process,
        Err(NoHandle::NoSuchOption) => return true,
        Err(NoHandle::Gone) => return false,
    };
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
}

/// What the system says about a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    terminal: bool,
    start: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        // Number 0 would be a process outside this namespace.
        let pid = (pid > 0).then_some(pid)?;
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Fields 7 and 22. The name in field 2 is the process's own choice and may hold anything, `)` included.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        let field = |number: usize| fields.split_ascii_whitespace().nth(number - 3);
        let terminal = field(7)?.parse::<i64>().ok()? != 0;
        Some(Self { terminal, start: field(22)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const TAIL: &str = "S 1 7 7 34816 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0";

    #[test]
    fn a_name_cannot_stand_for_other_fields() {
        let stat = Stat { terminal: true, start: 4711 };
        for name in ["sh", ") S 1 7 7 0 7", "a) b (c", "\u{e9}"] {
            assert_eq!(
                Stat::parse(format!("7 ({name}) {TAIL}\n").as_bytes()).as_ref(),
                Some(&stat)
            );
        }
        for line in ["", "7 (sh)", "7 (sh) S 1 7 7 x", "7 sh S 1 7 7 0", ")"] {
            assert_eq!(Stat::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn both_ends_of_a_pair_are_this_process() {
        let (here, there) = UnixStream::pair().unwrap();
        let process = Process::behind(&here).unwrap();
        assert_eq!(process.pid, std::process::id());
        assert!(process.is(&Process::behind(&there).unwrap()));
    }

    #[test]
    fn a_later_process_of_the_same_number_is_another_one() {
        let (here, _there) = UnixStream::pair().unwrap();
        let process = Process::behind(&here).unwrap();
        let later = Process { start: process.start.map(|start| start + 1), ..process };
        assert!(!process.is(&later));
        assert!(!later.has_terminal());
        let unknown = Process { start: None, ..process };
        assert!(!unknown.is(&unknown) && !unknown.has_terminal());
        assert_eq!(Stat::of(0), None);
    }
}
