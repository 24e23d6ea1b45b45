//! Tells the processes of a sandbox that they will be paused, and that they go on.
//!
//! The notice is `SIGTSTP`, as a terminal gives it, and goes to those alone that handle it: what they have to save, they save,
//! and then they stop, as every program does that handles this signal. Whoever does not handle it is frozen where it is
//! and never knows. `SIGCONT` goes to those that had the notice.
//!
//! **Invariant.** Nobody puts a pause off for longer than the grace, whatever it does.

use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::process::{Pid, Signal, kill_process};

use super::control::GRACE;

/// How often it is looked at who has stopped.
const LOOK: Duration = Duration::from_millis(5);

/// The bit of `SIGTSTP` in a set of signals.
const NOTICED: u64 = 1 << (libc::SIGTSTP - 1);

/// Who was told of a pause.
#[derive(Default)]
pub(super) struct Notice {
    told: Vec<Pid>,
    /// Until when the kernel waits for them, if it does.
    until: Option<Instant>,
}

/// What is known of a process.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    has_stopped: bool,
    handles_notice: bool,
}

impl Notice {
    /// Tells everybody who listens.
    pub(super) fn give(&mut self) {
        self.until = now().checked_add(GRACE);
        self.told = others().into_iter().filter(|pid| listens(*pid)).collect();
        for pid in &self.told {
            // It may have ended by itself.
            let _gone = kill_process(*pid, Signal::TSTP);
        }
    }

    /// Tells those that they may go on.
    pub(super) fn take_back(&mut self) {
        self.until = None;
        for pid in std::mem::take(&mut self.told) {
            // It may have ended by itself.
            let _gone = kill_process(pid, Signal::CONT);
        }
    }

    /// Whether the kernel waits and need not any longer: everybody has stopped or ended, or had its time. Said once.
    pub(super) fn is_over(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        let is_busy = |pid: &Pid| known(*pid).is_some_and(|known| !known.has_stopped);
        let is_over = now() >= until || !self.told.iter().any(is_busy);
        if is_over {
            self.until = None;
        }
        is_over
    }

    /// How long nobody need look.
    pub(super) fn patience(&self) -> Option<Timespec> {
        self.until.and_then(|_| Timespec::try_from(LOOK).ok())
    }
}

/// The processes of the sandbox but this one, which is its first.
fn others() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid > 1).filter_map(Pid::from_raw).collect()
}

fn listens(pid: Pid) -> bool {
    known(pid).is_some_and(|known| known.handles_notice && !known.has_stopped)
}

fn known(pid: Pid) -> Option<Known> {
    let status = std::fs::read(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    Some(read(&String::from_utf8_lossy(&status)))
}

/// Reads what `/proc` says of a process. Its name comes first and cannot hold a line break: those are escaped.
fn read(status: &str) -> Known {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim).unwrap_or_default()
    };
    let state = field("State:").chars().next();
    let handled = u64::from_str_radix(field("SigCgt:"), 16).unwrap_or_default();
    Known {
        // Stopped, traced, or dead and not yet reaped.
        has_stopped: matches!(state, Some('T' | 't' | 'Z' | 'X') | None),
        handles_notice: handled & NOTICED != 0,
    }
}

#[expect(clippy::disallowed_methods, reason = "bounds how long a pause is put off")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_handles_the_notice_is_known_and_whether_it_stands_still() {
        let status = |state: &str, handled: &str| {
            format!("Name:\tState: T\nState:\t{state}\nPid:\t7\nSigCgt:\t{handled}\n")
        };
        let of = |state, handled| {
            let Known { has_stopped, handles_notice } = read(&status(state, handled));
            (has_stopped, handles_notice)
        };
        assert_eq!(of("R (running)", "0000000000000000"), (false, false));
        assert_eq!(of("S (sleeping)", "0000000000080000"), (false, true));
        assert_eq!(of("T (stopped)", "0000000000080002"), (true, true));
        assert_eq!(of("Z (zombie)", "ffffffffffffffff"), (true, true));
        assert_eq!(of("R (running)", "nonsense"), (false, false));
        let nothing = read("");
        assert_eq!(nothing, Known { has_stopped: true, handles_notice: false });
    }
}
