//! One direction of a conversation.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};

/// Bytes on their way to one socket.
///
/// It holds only what that socket would not take yet, and the other side is not read until it has: nobody
/// can make it hold more than one reading.
#[derive(Debug, Default)]
pub(super) struct Flow {
    waiting: Vec<u8>,
    at: usize,
    sent: u64,
    /// Whether nothing more comes.
    ended: bool,
    /// Whether the socket was told so.
    shut: bool,
}

impl Flow {
    /// Sends what can be sent, and keeps the rest.
    pub(super) fn push(&mut self, to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
        let taken = if self.is_empty() { send(to, bytes)? } else { 0 };
        self.count(taken);
        self.waiting.extend_from_slice(bytes.get(taken..).unwrap_or_default());
        Ok(())
    }

    /// Sends what is left, and the end behind it. Whether anything went.
    pub(super) fn flush(&mut self, to: BorrowedFd<'_>) -> Result<bool, Errno> {
        let mut taken = 0;
        if !self.is_empty() {
            taken = send(to, self.waiting.get(self.at..).unwrap_or_default())?;
            self.count(taken);
            self.at += taken;
        }
        if self.is_empty() {
            self.waiting.clear();
            self.at = 0;
            if self.ended && !self.shut {
                self.shut = true;
                // Whoever is gone need not be told.
                let _gone = rustix::net::shutdown(to, Shutdown::Write);
            }
        }
        Ok(taken > 0)
    }

    /// Nothing more comes; the socket is told so by the next [`Flow::flush`].
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Nothing more comes, what is left is not sent, and the socket is told nothing.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
        self.at = 0;
        self.ended = true;
        self.shut = true;
    }

    /// Whether everything was sent.
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.waiting.len()
    }

    /// Whether more may come.
    pub(super) fn wants_more(&self) -> bool {
        self.is_empty() && !self.ended
    }

    /// Whether everything was sent, and the end behind it.
    pub(super) fn is_done(&self) -> bool {
        self.shut
    }

    /// Whether nothing more comes.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// How many bytes were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    fn count(&mut self, taken: usize) {
        self.sent = self.sent.saturating_add(taken as u64);
    }
}

/// Reads what is there. `None` if nothing is yet, 0 at the end.
///
/// A plain read on purpose: descriptors that a sandbox attaches to its bytes are then closed by the system.
pub(super) fn receive(from: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
    match rustix::io::read(from, buffer) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn send(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    match rustix::net::send(to, bytes, SendFlags::NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(errno),
    }
}
