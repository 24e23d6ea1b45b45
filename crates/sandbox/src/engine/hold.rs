//! What holds a running container.
//!
//! Its first process is ours and ends with the socket that it has to the kernel; with it, the operating system ends all
//! the others. So killing takes no engine, and a container dies with its kernel even where the engine hangs or is gone.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::native::Hold;
use crate::native::cgroup::{Group, Used};

use super::api::Api;

/// How long the end is waited for before the engine is asked to see to it.
const GRACE: Duration = Duration::from_secs(5);
/// How often the engine is asked.
const ROUNDS: usize = 3;

/// A container that runs.
pub(super) struct Held {
    pub(super) api: Arc<Api>,
    pub(super) id: String,
    /// Its first process, where it can be seen.
    pub(super) first: Option<(u32, OwnedFd)>,
    /// A copy of the socket to it.
    pub(super) control: UnixStream,
    /// Its control groups, where they can be read.
    pub(super) group: Arc<OnceLock<Group>>,
    pub(super) freezes: bool,
}

impl Hold for Held {
    fn pid(&self) -> Option<u32> {
        self.first.as_ref().map(|(pid, _)| *pid)
    }

    fn end(&self) -> Option<BorrowedFd<'_>> {
        self.first.as_ref().map(|(_, pidfd)| pidfd.as_fd())
    }

    fn freezes(&self) -> bool {
        self.freezes
    }

    fn freeze(&self) -> io::Result<()> {
        self.api.pause(&self.id).map_err(io::Error::other)
    }

    fn thaw(&self) -> io::Result<()> {
        self.api.resume(&self.id).map_err(io::Error::other)
    }

    fn kill(&self) {
        // It may have ended by itself.
        let _gone = self.control.shutdown(Shutdown::Both);
    }

    fn let_go(&self) -> Option<Used> {
        let used = self.used();
        self.kill();
        Some(used)
    }

    fn used(&self) -> Used {
        let mut used = self.group.get().map(Group::usage).unwrap_or_default();
        if used.oom_kills.is_none() {
            let state = self.api.inspect(&self.id).ok();
            used.oom_kills = state.map(|state| u64::from(state.oom_killed));
        }
        used
    }

    fn reap(&self) {
        for _ in 0..ROUNDS {
            let gone = match &self.first {
                Some((_, pidfd)) => has_ended(pidfd),
                None => self.api.wait(&self.id, GRACE).is_ok(),
            };
            if gone {
                return;
            }
            // It is stuck, or was halted: whether this helps, the next round tells.
            let _thawed = self.api.resume(&self.id);
            let _killed = self.api.kill(&self.id);
        }
    }
}

/// Waits for the end of a process that is not our child.
pub(super) fn has_ended(pidfd: &OwnedFd) -> bool {
    let Ok(grace) = Timespec::try_from(GRACE) else { return false };
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&grace)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(count) => return count > 0,
            Err(_) => return false,
        }
    }
}
