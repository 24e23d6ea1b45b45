//! The kernel's side of `sandbox-init`: one process that makes every first process, kept ready.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use super::control::{self, Order};
use super::lock;

/// Nothing in the set-up of a sandbox waits for anybody; longer than this means that the machine is stuck.
const SET_UP: Duration = Duration::from_secs(30);

/// A `sandbox-init`, started when it is needed and again if it died.
#[derive(Debug)]
pub(super) struct Maker {
    program: PathBuf,
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    orders: UnixStream,
}

impl Maker {
    /// One that runs this program as `PROGRAM sandbox-init`.
    pub(super) fn new(program: &Path) -> Self {
        Self { program: program.to_owned(), process: Mutex::default() }
    }

    /// Gives an order; the answers come over the socket.
    pub(super) fn order(&self, order: &Order, fds: Vec<OwnedFd>) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(SET_UP))?;
        let fds: Vec<OwnedFd> = std::iter::once(theirs.into()).chain(fds).collect();
        let mut slot = lock(&self.process);
        if let Some(process) = &mut *slot
            && control::send(&process.orders, order, &fds).is_ok()
        {
            return Ok(ours);
        }
        // There was none, or it has died: nothing of an order that it did not take has happened.
        let process = slot.insert(Process::start(&self.program)?);
        control::send(&process.orders, order, &fds)?;
        Ok(ours)
    }
}

impl Process {
    #[expect(clippy::disallowed_methods, reason = "the one place that starts `sandbox-init`")]
    fn start(program: &Path) -> io::Result<Self> {
        let (orders, theirs) = UnixStream::pair()?;
        orders.set_write_timeout(Some(SET_UP))?;
        let child = Command::new(program)
            .arg("sandbox-init")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, orders })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends when nobody can order anything any more; it might also have died, or be stuck.
        let _shut = self.orders.shutdown(std::net::Shutdown::Both);
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}
