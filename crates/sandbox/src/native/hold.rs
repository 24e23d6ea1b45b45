//! What a running sandbox is held by: how all of it is halted, ended and weighed.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::process::{Signal, pidfd_send_signal};

use super::cgroup::{Group, Part, Used};
use super::supervise::reap;

/// What holds a running sandbox. Each kind of sandbox has one.
pub(crate) trait Hold: Send + Sync {
    /// The number of its first process on this machine, where that is known.
    fn pid(&self) -> Option<u32>;

    /// Becomes readable when nothing of it is left. Where there is none, the end of the control socket tells that it is
    /// about to end, and [`reap`](Hold::reap) waits for that.
    fn end(&self) -> Option<BorrowedFd<'_>>;

    /// Whether all of it can be halted at once; otherwise each process is, by a signal.
    fn freezes(&self) -> bool;

    /// Halts all of it.
    fn freeze(&self) -> io::Result<()>;

    /// Lets all of it go on.
    fn thaw(&self) -> io::Result<()>;

    /// Kills all of it. What is halted dies once it is let go.
    fn kill(&self);

    /// The job has ended by itself: what it used, where that cannot be known later. Then the rest may end.
    fn let_go(&self) -> Option<Used>;

    /// What it uses and has used.
    fn used(&self) -> Used;

    /// Comes back when nothing of it is left. May be called again.
    fn reap(&self);
}

/// Namespaces, whose end is that of their first process, and a control group.
pub(super) struct Namespaces {
    pid: u32,
    pidfd: OwnedFd,
    group: Arc<Group>,
}

impl Namespaces {
    /// A first process, by number and handle, and its group.
    pub(super) fn new((pid, pidfd): (u32, OwnedFd), group: Arc<Group>) -> Self {
        Self { pid, pidfd, group }
    }
}

impl Hold for Namespaces {
    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }

    fn end(&self) -> Option<BorrowedFd<'_>> {
        Some(self.pidfd.as_fd())
    }

    fn freezes(&self) -> bool {
        self.group.has(Part::Freezer)
    }

    fn freeze(&self) -> io::Result<()> {
        self.group.freeze().map_err(io::Error::other)
    }

    fn thaw(&self) -> io::Result<()> {
        self.group.thaw().map_err(io::Error::other)
    }

    fn kill(&self) {
        // It may have ended by itself.
        let _gone = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    fn let_go(&self) -> Option<Used> {
        None
    }

    fn used(&self) -> Used {
        self.group.usage()
    }

    fn reap(&self) {
        reap(&self.pidfd);
    }
}
