//! Connects to the first of several addresses that answers; if that is a proxy, asks it for a tunnel.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use super::head::LONGEST_HEAD;
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
    /// What a proxy in between is asked first.
    ask: Option<Vec<u8>>,
    asking: Option<Asking>,
}

/// A proxy that is asked for a tunnel.
#[derive(Debug)]
struct Asking {
    socket: OwnedFd,
    /// What it has not been told yet.
    ask: Vec<u8>,
    /// What it has answered.
    head: Vec<u8>,
}

#[derive(Debug)]
struct Trying {
    socket: OwnedFd,
    deadline: Instant,
}

impl Dial {
    /// Addresses to try, all of them checked. If they are a proxy's, this is what it is asked.
    pub(super) fn new(addresses: Vec<SocketAddr>, ask: Option<Vec<u8>>) -> Self {
        let left = addresses.into_iter();
        Self { left, trying: None, address: None, timed_out: false, ask, asking: None }
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
        match (&self.asking, &self.trying) {
            (Some(asking), _) => Some((asking.socket.as_fd(), asking.wanted())),
            (None, Some(trying)) => Some((trying.socket.as_fd(), PollFlags::OUT)),
            (None, None) => None,
        }
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
        if self.asking.is_none() {
            match (self.connect(now, longest)?, self.ask.take()) {
                (Ok(socket), Some(ask)) => {
                    self.asking = Some(Asking { socket, ask, head: Vec::new() });
                }
                (connected, _) => return Some(connected),
            }
        }
        let mut asking = self.asking.take()?;
        match asking.advance() {
            Ok(true) => Some(Ok(asking.socket)),
            Ok(false) => {
                self.asking = Some(asking);
                None
            }
            Err(failure) => Some(Err(failure)),
        }
    }

    fn connect(&mut self, now: Instant, longest: Duration) -> Option<Result<OwnedFd, Failure>> {
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

impl Asking {
    fn wanted(&self) -> PollFlags {
        if self.ask.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Whether the tunnel stands.
    fn advance(&mut self) -> Result<bool, Failure> {
        while !self.ask.is_empty() {
            match rustix::net::send(&self.socket, &self.ask, SendFlags::NOSIGNAL) {
                Ok(count) => drop(self.ask.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(_) => return Err(Failure::Upstream(0)),
            }
        }
        // Byte by byte: what stands behind the head belongs to the host.
        let mut byte = [0];
        while !self.head.ends_with(b"\r\n\r\n") {
            match rustix::io::read(&self.socket, &mut byte) {
                Ok(1..) if self.head.len() < LONGEST_HEAD => self.head.extend_from_slice(&byte),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Ok(_) | Err(_) => return Err(Failure::Upstream(0)),
            }
        }
        match status(&self.head) {
            200..=299 => Ok(true),
            other => Err(Failure::Upstream(other)),
        }
    }
}

/// The status that a head tells; 0 if it is none.
fn status(head: &[u8]) -> u16 {
    let mut words = head.split(|byte| matches!(byte, b' ' | b'\r'));
    let is_http = words.next().is_some_and(|version| version.starts_with(b"HTTP/1."));
    let code = words.next().and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    code.filter(|_| is_http).unwrap_or(0)
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
