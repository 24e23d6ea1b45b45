//! Connects to the first of several addresses that answers.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::record::Failure;
use super::server::after;

/// Addresses that are tried in turn.
#[derive(Debug)]
pub(super) struct Dial {
    left: IntoIter<SocketAddr>,
    trying: Option<Trying>,
    /// The last address that was tried.
    address: Option<SocketAddr>,
    timed_out: bool,
}

#[derive(Debug)]
struct Trying {
    socket: OwnedFd,
    deadline: Instant,
}

impl Dial {
    /// Addresses to try, all of them checked.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { left: addresses.into_iter(), trying: None, address: None, timed_out: false }
    }

    /// The address that was tried last.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// When to go on with the next address.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.trying.as_ref().map(|trying| trying.deadline)
    }

    /// The socket that is waited for.
    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.trying.as_ref().map(|trying| (trying.socket.as_fd(), PollFlags::OUT))
    }

    /// Leaves the present address.
    pub(super) fn give_up(&mut self) {
        self.timed_out |= self.trying.take().is_some();
    }

    /// Goes on as far as it can: nothing if there is something to wait for.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        longest: Duration,
    ) -> Option<Result<OwnedFd, Failure>> {
        if let Some(Trying { socket, deadline }) = self.trying.take() {
            match state(&socket) {
                Attempt::Stands => return Some(Ok(socket)),
                Attempt::Pending => {
                    self.trying = Some(Trying { socket, deadline });
                    return None;
                }
                Attempt::Failed => {}
            }
        }
        while let Some(address) = self.left.next() {
            self.address = Some(address);
            // The time is shared out: one address that swallows everything must not cost the others.
            let parts = u32::try_from(self.left.len()).unwrap_or(u32::MAX).saturating_add(1).min(3);
            match connect(address) {
                Err(_) => {}
                Ok((socket, true)) => return Some(Ok(socket)),
                Ok((socket, false)) => {
                    let deadline = after(now, longest.checked_div(parts).unwrap_or(longest));
                    self.trying = Some(Trying { socket, deadline });
                    return None;
                }
            }
        }
        Some(Err(if self.timed_out { Failure::Timeout } else { Failure::Connect }))
    }
}

enum Attempt {
    Stands,
    Pending,
    Failed,
}

fn state(socket: &OwnedFd) -> Attempt {
    match (sockopt::socket_error(socket), rustix::net::getpeername(socket)) {
        (Ok(Ok(())), Ok(_)) => Attempt::Stands,
        (Ok(Ok(())), Err(Errno::NOTCONN)) => Attempt::Pending,
        (Ok(_) | Err(_), _) => Attempt::Failed,
    }
}

/// A socket, and whether it is connected already.
fn connect(address: SocketAddr) -> Result<(OwnedFd, bool), Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => Ok((socket, true)),
        Err(Errno::INPROGRESS | Errno::INTR) => Ok((socket, false)),
        Err(errno) => Err(errno),
    }
}
