//! A conversation between a client and a host.
//!
//! **Invariant.** Bytes of the client reach the host only as far as its guard let them pass.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::answer;
use super::body::Body;
use super::flow::{Flow, receive};
use super::greeting::{Greeted, Greeting};
use super::head::{Kind, Request};
use super::record::{Ending, Failure, Refusal};

/// A conversation.
#[derive(Debug)]
pub(super) struct Relay {
    host: OwnedFd,
    up: Flow,
    down: Flow,
    guard: Guard,
    /// Bytes to the client that are the proxy's own.
    own: u64,
    /// The name in the greeting of TLS.
    pub(super) server_name: Option<String>,
}

/// What the client may send.
#[derive(Debug)]
enum Guard {
    /// A tunnel, before the first bytes were looked at.
    Greeting(Greeting),
    /// A tunnel.
    Tunnel,
    /// The body of the only request.
    Body(Body),
}

/// How far a conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// It goes on, and something was carried.
    Moved,
    /// It goes on.
    Still,
    /// It is over.
    Over(Ending),
    /// The client sent what it may not.
    Refused(Refusal),
    /// The host did not answer.
    Failed(Failure),
}

impl Relay {
    /// Begins to carry out a request over a connection that stands, with the bytes that came behind it.
    pub(super) fn new(
        request: Request,
        rest: &[u8],
        client: BorrowedFd<'_>,
        host: OwnedFd,
    ) -> (Self, Stand) {
        let Request { host: name, port, kind } = request;
        let (guard, head) = match kind {
            Kind::Tunnel => (Guard::Greeting(Greeting::new(name, port)), Vec::new()),
            Kind::Forward { head, body } => (Guard::Body(body), head),
        };
        let (up, down) = (Flow::default(), Flow::default());
        let mut relay = Self { host, up, down, guard, own: 0, server_name: None };
        let stand = relay.begin(&head, rest, client);
        (relay, stand)
    }

    fn begin(&mut self, head: &[u8], rest: &[u8], client: BorrowedFd<'_>) -> Stand {
        if self.is_tunnel() {
            self.own = answer::TUNNEL.len() as u64;
            if self.down.push(client, answer::TUNNEL).is_err() {
                return Stand::Over(Ending::Broken);
            }
        } else if self.up.push(self.host.as_fd(), head).is_err() {
            return Stand::Failed(Failure::Silent);
        }
        match self.pass(rest) {
            Ok(()) => Stand::Moved,
            Err(stand) => stand,
        }
    }

    /// Whether the proxy could still answer in the host's place.
    pub(super) fn is_unanswered(&self) -> bool {
        !self.is_tunnel() && self.down.sent() == 0
    }

    /// Whether bytes are carried as they are.
    pub(super) fn is_tunnel(&self) -> bool {
        !matches!(self.guard, Guard::Body(_))
    }

    /// Whether the host has closed its side.
    pub(super) fn is_half_closed(&self) -> bool {
        self.down.is_ended()
    }

    /// Whether a greeting is still to come without which nothing passes.
    pub(super) fn awaits_greeting(&self) -> bool {
        matches!(&self.guard, Guard::Greeting(greeting) if greeting.is_needed())
    }

    /// Bytes that went each way.
    pub(super) fn carried(&self) -> (u64, u64) {
        (self.up.sent(), self.down.sent().saturating_sub(self.own))
    }

    /// What the client's socket is waited for.
    pub(super) fn client_interest(&self) -> PollFlags {
        interest(self.up.wants_more(), !self.down.is_empty())
    }

    /// The host's socket, and what it is waited for.
    pub(super) fn host_interest(&self) -> (BorrowedFd<'_>, PollFlags) {
        let reading = self.down.wants_more() && !self.awaits_greeting();
        (self.host.as_fd(), interest(reading, !self.up.is_empty()))
    }

    /// Carries what can be carried now.
    pub(super) fn advance(&mut self, client: BorrowedFd<'_>, buffer: &mut [u8]) -> Stand {
        let moved = match self.carry(client, buffer) {
            Ok(moved) => moved,
            Err(stand) => return stand,
        };
        // A host that ends before it has read the whole body has answered all the same.
        let over = self.down.is_done() && (self.up.is_done() || !self.is_tunnel());
        match (over, moved) {
            (true, _) => Stand::Over(Ending::Complete),
            (false, true) => Stand::Moved,
            (false, false) => Stand::Still,
        }
    }

    fn carry(&mut self, client: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<bool, Stand> {
        let mut moved = self.flush_up()?;
        moved |= self.down.flush(client).map_err(broken)?;
        moved |= self.take_up(client, buffer)?;
        moved |= self.take_down(client, buffer)?;
        Ok(moved)
    }

    fn flush_up(&mut self) -> Result<bool, Stand> {
        match self.up.flush(self.host.as_fd()) {
            Ok(moved) => Ok(moved),
            // It may have answered before it hung up; what it said is still to be read.
            Err(_) if !self.is_tunnel() && !self.down.is_ended() => {
                self.up.stop();
                Ok(false)
            }
            Err(errno) => Err(broken(errno)),
        }
    }

    /// Reads from the client.
    fn take_up(&mut self, client: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<bool, Stand> {
        if !self.up.wants_more() {
            return Ok(false);
        }
        let Some(count) = receive(client, buffer).map_err(broken)? else { return Ok(false) };
        if count == 0 {
            return self.client_ended();
        }
        self.pass(buffer.get(..count).unwrap_or_default())?;
        Ok(true)
    }

    fn client_ended(&mut self) -> Result<bool, Stand> {
        match &self.guard {
            Guard::Greeting(greeting) if greeting.is_needed() => Err(Stand::Over(Ending::Broken)),
            Guard::Body(body) if !body.is_complete() => Err(Stand::Refused(Refusal::Incomplete)),
            // A host that answers a request may take the end of the client for its leaving.
            Guard::Body(_) => {
                self.up.stop();
                Ok(true)
            }
            Guard::Greeting(_) | Guard::Tunnel => {
                self.up.end();
                self.up.flush(self.host.as_fd()).map_err(broken)?;
                Ok(true)
            }
        }
    }

    /// Sends on what the guard lets pass.
    fn pass(&mut self, bytes: &[u8]) -> Result<(), Stand> {
        let host = self.host.as_fd();
        match &mut self.guard {
            Guard::Tunnel => self.up.push(host, bytes).map_err(broken),
            Guard::Greeting(_) if bytes.is_empty() => Ok(()),
            Guard::Greeting(greeting) => {
                let greeted = greeting.push(bytes, &mut self.server_name);
                if let Greeted::Pass(held) = greeted.map_err(Stand::Refused)? {
                    self.guard = Guard::Tunnel;
                    self.up.push(host, &held).map_err(broken)?;
                }
                Ok(())
            }
            Guard::Body(body) => {
                let (taken, refusal) = body.accept(bytes);
                let pushed = self.up.push(host, bytes.get(..taken).unwrap_or_default());
                match (refusal, pushed) {
                    (Some(refusal), _) => Err(Stand::Refused(refusal)),
                    // As with `flush_up`.
                    (None, Err(_)) => {
                        self.up.stop();
                        Ok(())
                    }
                    (None, Ok(())) => Ok(()),
                }
            }
        }
    }

    /// Reads from the host.
    fn take_down(&mut self, client: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<bool, Stand> {
        if !self.down.wants_more() || self.awaits_greeting() {
            return Ok(false);
        }
        let read = receive(self.host.as_fd(), buffer);
        let unanswered = self.is_unanswered();
        let count = match read {
            Ok(None) => return Ok(false),
            Ok(Some(count)) => count,
            Err(_) if unanswered => return Err(Stand::Failed(Failure::Silent)),
            Err(errno) => return Err(broken(errno)),
        };
        if count == 0 && unanswered {
            return Err(Stand::Failed(Failure::Silent));
        }
        if count == 0 {
            self.down.end();
            self.down.flush(client).map_err(broken)?;
        } else {
            let bytes = buffer.get(..count).unwrap_or_default();
            self.down.push(client, bytes).map_err(broken)?;
        }
        Ok(true)
    }
}

fn broken(_: Errno) -> Stand {
    Stand::Over(Ending::Broken)
}

fn interest(reading: bool, writing: bool) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, reading);
    flags.set(PollFlags::OUT, writing);
    flags
}
