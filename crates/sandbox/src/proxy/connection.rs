//! One client from its request to its end.
//!
//! Nothing here waits: the server calls when a socket is ready, a name was looked up or a time is over.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::net::{Shutdown, sockopt};

use super::answer;
use super::dial::Dial;
use super::flow::{Flow, receive};
use super::gate::Gate;
use super::head::{self, Asked, Gather, Gathered, Request};
use super::host::Host;
use super::record::{Decision, Ending, Failure, Record, Refusal, Sink};
use super::relay::{Relay, Stand};
use super::server::{Times, after};
use super::upstream::Upstream;

/// What all clients of one sandbox have in common.
pub(super) struct Shared {
    pub(super) gate: Gate,
    pub(super) sink: Sink,
    pub(super) times: Times,
    /// The proxy through which everything goes.
    pub(super) upstream: Option<Arc<Upstream>>,
    /// Where bytes are read into.
    pub(super) buffer: Vec<u8>,
}

impl Shared {
    /// Whom a connection is made to: the host, or the proxy before it.
    fn next_hop<'r>(&'r self, request: &'r Request) -> (&'r Host, u16) {
        match &self.upstream {
            Some(upstream) => upstream.place(),
            None => (&request.host, request.port),
        }
    }
}

/// One client.
pub(super) struct Connection {
    client: OwnedFd,
    record: Record,
    stage: Stage,
    deadline: Instant,
}

/// How far a client is.
enum Stage {
    /// Its request is coming.
    Asking(Gather),
    /// Its request is allowed, and the addresses of its host are wanted.
    Lookup { request: Request, rest: Vec<u8>, asked: bool },
    /// They are tried in turn.
    Dialling { request: Request, rest: Vec<u8>, dial: Dial },
    /// It is carried out.
    Talking(Box<Relay>),
    /// It gets its last bytes from the proxy itself, and is read until it hangs up: a socket that is
    /// closed with something unread takes back what was not received yet.
    Leaving(Flow),
    /// Nothing is left to do.
    Gone,
}

impl Connection {
    /// A client whose request is to come.
    pub(super) fn new(client: OwnedFd, number: u64, now: Instant, shared: &Shared) -> Self {
        // Fails on a Unix socket, which does not hold small pieces back in any case.
        let _unix = sockopt::set_tcp_nodelay(&client, true);
        let stage = Stage::Asking(Gather::default());
        Self { client, record: blank(number), stage, deadline: after(now, shared.times.head) }
    }

    /// The end of a client for which there is no room.
    pub(super) fn turn_away(&mut self, now: Instant, shared: &Shared) {
        self.refuse(Refusal::Busy, now, shared);
    }

    /// When something must have happened.
    pub(super) fn deadline(&self) -> Instant {
        match &self.stage {
            Stage::Dialling { dial, .. } => {
                dial.deadline().map_or(self.deadline, |deadline| deadline.min(self.deadline))
            }
            _ => self.deadline,
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone)
    }

    /// Whether its request was answered by the proxy itself.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving(_) | Stage::Gone)
    }

    /// The sockets that are waited for. One that nothing is wanted of is not among them: its end would be
    /// told over and over.
    pub(super) fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let client = self.client.as_fd();
        let (of_client, of_host) = match &self.stage {
            Stage::Asking(_) => (PollFlags::IN, None),
            Stage::Lookup { .. } | Stage::Gone => (PollFlags::empty(), None),
            Stage::Dialling { dial, .. } => (PollFlags::empty(), dial.interest()),
            Stage::Talking(relay) => (relay.client_interest(), Some(relay.host_interest())),
            Stage::Leaving(flow) if flow.is_empty() => (PollFlags::IN, None),
            Stage::Leaving(_) => (PollFlags::IN | PollFlags::OUT, None),
        };
        let both = [Some((client, of_client)), of_host];
        both.into_iter().flatten().filter(|(_, flags)| !flags.is_empty())
    }

    /// A name to look up, told once.
    pub(super) fn wanted(&mut self, shared: &Shared) -> Option<(String, u16)> {
        match &mut self.stage {
            Stage::Lookup { request, asked, .. } if !*asked => {
                *asked = true;
                let (host, port) = shared.next_hop(request);
                Some((host.to_string(), port))
            }
            _ => None,
        }
    }

    /// A socket is ready.
    pub(super) fn advance(&mut self, now: Instant, shared: &mut Shared) {
        match mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Asking(gather) => self.gather(gather, now, shared),
            Stage::Dialling { request, rest, dial } => self.dial(request, rest, dial, now, shared),
            Stage::Talking(mut relay) => {
                let stand = relay.advance(self.client.as_fd(), &mut shared.buffer);
                self.talk(relay, stand, now, shared);
            }
            Stage::Leaving(flow) => self.leave(flow, shared),
            waiting @ (Stage::Lookup { .. } | Stage::Gone) => self.stage = waiting,
        }
    }

    /// The addresses of its host are known, or not.
    pub(super) fn resolved(
        &mut self,
        found: io::Result<Vec<SocketAddr>>,
        now: Instant,
        shared: &Shared,
    ) {
        match mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Lookup { request, rest, .. } => match found {
                Ok(found) => self.found(request, rest, &found, now, shared),
                Err(_) => self.fail(Failure::Lookup, now, shared),
            },
            // It was answered before the answer came.
            other => self.stage = other,
        }
    }

    /// Its time is over.
    pub(super) fn expire(&mut self, now: Instant, shared: &Shared) {
        match mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Asking(gather) => {
                self.asked(head::sketch(gather.so_far()));
                self.refuse(Refusal::Slow, now, shared);
            }
            Stage::Lookup { .. } => self.fail(Failure::Timeout, now, shared),
            Stage::Dialling { request, rest, mut dial } => {
                if now < self.deadline {
                    dial.give_up();
                    self.dial(request, rest, dial, now, shared);
                } else {
                    self.fail(Failure::Timeout, now, shared);
                }
            }
            Stage::Talking(relay) if relay.awaits_greeting() => {
                self.talk(relay, Stand::Refused(Refusal::Slow), now, shared);
            }
            Stage::Talking(relay) => self.talk(relay, Stand::Over(Ending::Idle), now, shared),
            Stage::Leaving(_) | Stage::Gone => {}
        }
    }

    /// The proxy ends.
    pub(super) fn stop(mut self, shared: &Shared) {
        match mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Asking(gather) if gather.is_empty() => {}
            Stage::Asking(gather) => {
                self.asked(head::sketch(gather.so_far()));
                self.note(Decision::Refused(Refusal::Incomplete), shared);
            }
            Stage::Lookup { .. } | Stage::Dialling { .. } => {
                self.note(Decision::Closed(Ending::Stopped), shared);
            }
            Stage::Talking(relay) => {
                self.measure(&relay);
                self.note(Decision::Closed(Ending::Stopped), shared);
            }
            Stage::Leaving(_) | Stage::Gone => {}
        }
    }

    fn gather(&mut self, mut gather: Gather, now: Instant, shared: &mut Shared) {
        let read = receive(self.client.as_fd(), &mut shared.buffer);
        let gathered = match read {
            Ok(None) => Gathered::More,
            // Whoever says nothing has asked for nothing.
            Ok(Some(0)) | Err(_) if gather.is_empty() => return,
            Ok(Some(0)) | Err(_) => Gathered::Refused(Refusal::Incomplete),
            Ok(Some(count)) => gather.push(shared.buffer.get(..count).unwrap_or_default()),
        };
        match gathered {
            Gathered::More => self.stage = Stage::Asking(gather),
            Gathered::Refused(refusal) => {
                self.asked(head::sketch(gather.so_far()));
                self.refuse(refusal, now, shared);
            }
            Gathered::Head(head, rest) => {
                let (asked, request) = head::read(&head);
                self.asked(asked);
                match request.and_then(|request| {
                    shared.gate.admit(&request.host, request.port).map(|()| request)
                }) {
                    Ok(request) => self.admitted(request, rest, now, shared),
                    Err(refusal) => self.refuse(refusal, now, shared),
                }
            }
        }
    }

    fn admitted(&mut self, request: Request, rest: Vec<u8>, now: Instant, shared: &Shared) {
        self.deadline = after(now, shared.times.connect);
        let checked = match (&shared.upstream, &request.host) {
            (Some(_), Host::Address(address)) => {
                shared.gate.check(&[SocketAddr::new(*address, request.port)]).map(|_| ())
            }
            (Some(_) | None, _) => Ok(()),
        };
        if let Err(refusal) = checked {
            return self.refuse(refusal, now, shared);
        }
        match shared.next_hop(&request) {
            (Host::Name(_), _) => self.stage = Stage::Lookup { request, rest, asked: false },
            (Host::Address(address), port) => {
                let found = [SocketAddr::new(*address, port)];
                self.found(request, rest, &found, now, shared);
            }
        }
    }

    fn found(
        &mut self,
        request: Request,
        rest: Vec<u8>,
        found: &[SocketAddr],
        now: Instant,
        shared: &Shared,
    ) {
        self.record.address = found.first().copied();
        // Where the person's own proxy is, is the person's word.
        let checked = match &shared.upstream {
            Some(_) => Ok(found.to_vec()),
            None => shared.gate.check(found),
        };
        match checked {
            Err(refusal) => self.refuse(refusal, now, shared),
            Ok(addresses) if addresses.is_empty() => self.fail(Failure::Lookup, now, shared),
            Ok(addresses) => {
                self.note(Decision::Passed, shared);
                let ask = shared.upstream.as_ref().map(|proxy| proxy.ask(&request));
                let dial = Dial::new(addresses, ask);
                self.dial(request, rest, dial, now, shared);
            }
        }
    }

    fn dial(
        &mut self,
        request: Request,
        rest: Vec<u8>,
        mut dial: Dial,
        now: Instant,
        shared: &Shared,
    ) {
        let dialled = dial.advance(now, shared.times.connect);
        self.record.address = dial.address().or(self.record.address);
        match dialled {
            None => self.stage = Stage::Dialling { request, rest, dial },
            Some(Err(failure)) => self.fail(failure, now, shared),
            Some(Ok(host)) => {
                let (relay, stand) = Relay::new(request, &rest, self.client.as_fd(), host);
                self.deadline = after(now, shared.times.head);
                self.talk(Box::new(relay), stand, now, shared);
            }
        }
    }

    /// Goes on from what became of a conversation.
    fn talk(&mut self, relay: Box<Relay>, stand: Stand, now: Instant, shared: &Shared) {
        self.measure(&relay);
        match stand {
            Stand::Moved | Stand::Still => {
                if stand == Stand::Moved && !relay.awaits_greeting() {
                    let times = shared.times;
                    let longest = if relay.is_half_closed() { times.leave } else { times.idle };
                    self.deadline = after(now, longest);
                }
                self.stage = Stage::Talking(relay);
            }
            Stand::Over(ending) => {
                self.note(Decision::Closed(ending), shared);
                self.last_words(Vec::new(), now, shared);
            }
            Stand::Refused(refusal) => {
                self.note(Decision::Refused(refusal), shared);
                let answer = match refusal {
                    Refusal::ServerName => answer::ACCESS_DENIED.to_vec(),
                    _ if relay.is_unanswered() => answer::refused(&self.asker(), refusal),
                    _ => Vec::new(),
                };
                self.last_words(answer, now, shared);
            }
            Stand::Failed(failure) if relay.is_unanswered() => self.fail(failure, now, shared),
            Stand::Failed(failure) => {
                self.note(Decision::Failed(failure), shared);
                self.last_words(Vec::new(), now, shared);
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal, now: Instant, shared: &Shared) {
        self.note(Decision::Refused(refusal), shared);
        self.last_words(answer::refused(&self.asker(), refusal), now, shared);
    }

    fn fail(&mut self, failure: Failure, now: Instant, shared: &Shared) {
        self.note(Decision::Failed(failure), shared);
        self.last_words(answer::failed(&self.asker(), failure), now, shared);
    }

    fn last_words(&mut self, words: Vec<u8>, now: Instant, shared: &Shared) {
        let mut flow = Flow::default();
        self.deadline = after(now, shared.times.leave);
        flow.end();
        let said =
            flow.push(self.client.as_fd(), &words).and_then(|()| flow.flush(self.client.as_fd()));
        self.stage = if said.is_ok() { Stage::Leaving(flow) } else { Stage::Gone };
    }

    fn leave(&mut self, mut flow: Flow, shared: &mut Shared) {
        let said = flow.flush(self.client.as_fd());
        let heard = receive(self.client.as_fd(), &mut shared.buffer);
        let stays = said.is_ok() && !matches!(heard, Ok(Some(0)) | Err(_));
        if stays {
            self.stage = Stage::Leaving(flow);
        } else {
            let _gone = rustix::net::shutdown(&self.client, Shutdown::Both);
        }
    }

    fn asked(&mut self, asked: Asked) {
        let Asked { method, host, port } = asked;
        (self.record.method, self.record.host, self.record.port) = (method, host, port);
    }

    fn asker(&self) -> Asked {
        let Record { method, host, port, .. } = &self.record;
        Asked { method: method.clone(), host: host.clone(), port: *port }
    }

    fn measure(&mut self, relay: &Relay) {
        (self.record.up, self.record.down) = relay.carried();
        self.record.server_name.clone_from(&relay.server_name);
    }

    fn note(&mut self, decision: Decision, shared: &Shared) {
        self.record.decision = decision;
        (shared.sink)(&self.record);
    }
}

fn blank(number: u64) -> Record {
    Record {
        request: number,
        method: String::new(),
        host: String::new(),
        port: None,
        address: None,
        server_name: None,
        decision: Decision::Refused(Refusal::Incomplete),
        up: 0,
        down: 0,
    }
}
