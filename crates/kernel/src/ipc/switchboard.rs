//! The server's one thread: who may speak, and for how long.
//!
//! A connection has its turn when there is something to read. In one turn little is parsed and a bounded amount
//! read; who has more waits behind all who have just begun to speak. So a peer that sends one message is heard
//! soon, whatever others send.
//!
//! **Invariant.** The thread waits only in `epoll`, and without end where nobody owes anything.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fluffy_base::{
    API_VERSION, Fault, FaultCode, FrameDecoder, FrameError, Message, OLDEST_API_VERSION,
    encode_frame,
};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use serde_json::{Value, json};

use super::handshake::{Hello, Welcome};
use super::line::{Line, Rest, Shared};
use super::link::{Late, Link, Since};
use super::parser::Parser;
use super::peer::{Peer, Who};
use super::process::Process;
use super::server::{ServerOptions, Service};
use super::socket::Listener;
use super::tokens::Tokens;
use super::{CLOSED, HELLO, PING};
use crate::guest::now;

/// A frame up to this size is parsed at once; a larger one beside.
const SMALL_FRAME: usize = 4 << 10;

/// How many bytes of small frames are parsed in one turn; the last may go beyond.
const PARSED_A_TURN: usize = 4 << 10;

/// How much is read at a time.
const READ_AT_ONCE: usize = 16 << 10;

/// How much is read in one turn.
const READ_A_TURN: usize = 256 << 10;

/// How many who want to go on are heard before those who just began are looked for again.
const HUNGRY_A_ROUND: usize = 8;

/// How many are accepted in one round.
const ACCEPTED_A_ROUND: usize = 16;

/// Unfinished frames up to this size are everyone's right and not counted.
const UNCOUNTED: usize = 64 << 10;

/// How long nobody is accepted after the system had no descriptors left.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);

/// How long the last words may take when the server stops.
const STOPPING: Duration = Duration::from_secs(1);

/// The longest time for anything.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What is watched of a connection. Each change is told once, which is why reading goes on until nothing is there.
const READING: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// What tells that a peer is ending.
const HUNG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

const LISTENER: u64 = 0;
const WAKE: u64 = 1;
const FIRST_LINK: u64 = 2;

/// All connections.
pub(super) struct Switchboard {
    epoll: OwnedFd,
    listener: Option<Listener>,
    service: Arc<dyn Service>,
    options: ServerOptions,
    shared: Arc<Shared>,
    parser: Parser,
    tokens: Tokens,
    /// Names this process.
    kernel: String,
    uid: u32,
    links: HashMap<u64, Link>,
    next: u64,
    /// Who has just become readable.
    fresh: VecDeque<u64>,
    /// Who had a turn and wants another.
    hungry: VecDeque<u64>,
    /// Bytes of large unfinished frames.
    unfinished: usize,
    buffer: Vec<u8>,
    /// When somebody may be late.
    wake_at: Option<Instant>,
    /// Until when nobody is accepted.
    not_accepting: Option<Instant>,
    stopping: Option<Instant>,
}

/// How much one turn may still cost.
struct Turn {
    parse: usize,
    read: usize,
}

impl Switchboard {
    pub(super) fn new(
        listener: Listener,
        service: Arc<dyn Service>,
        options: ServerOptions,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        listener.socket().set_nonblocking(true)?;
        epoll::add(&epoll, listener.socket(), EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, shared.wake(), EventData::new_u64(WAKE), EventFlags::IN)?;
        let options = within_reason(options);
        let bytes = options.ids.fresh().ok_or_else(|| io::Error::other("no random bytes"))?;
        Ok(Self {
            epoll,
            listener: Some(listener),
            service,
            parser: Parser::start(Arc::clone(&shared))?,
            tokens: Tokens::new(Arc::clone(&options.ids)),
            options,
            shared,
            kernel: format!("kernel-{:032x}", u128::from_be_bytes(bytes)),
            uid: rustix::process::geteuid().as_raw(),
            links: HashMap::new(),
            next: FIRST_LINK,
            fresh: VecDeque::new(),
            hungry: VecDeque::new(),
            unfinished: 0,
            buffer: vec![0; READ_AT_ONCE],
            wake_at: None,
            not_accepting: None,
            stopping: None,
        })
    }

    /// Serves until it is told to stop.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        while !self.is_over() {
            events.clear();
            let timeout = self.timeout();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            for event in &events {
                self.happened(*event);
            }
            self.round();
            self.sweep();
        }
        let keys: Vec<u64> = self.links.keys().copied().collect();
        for link in keys.iter().filter_map(|key| self.links.remove(key)).collect::<Vec<_>>() {
            self.close(link);
        }
    }

    fn is_over(&self) -> bool {
        self.stopping.is_some_and(|until| self.links.is_empty() || now() >= until)
    }

    /// How long to wait for anything to happen: without end where nobody can be late.
    fn timeout(&self) -> Option<Timespec> {
        if !self.fresh.is_empty() || !self.hungry.is_empty() {
            return Some(Timespec::default());
        }
        let until =
            [self.wake_at, self.not_accepting, self.stopping].into_iter().flatten().min()?;
        // A little longer, so that the time has passed when we look.
        let left = until.saturating_duration_since(now()) + Duration::from_millis(1);
        Timespec::try_from(left).ok()
    }

    fn happened(&mut self, event: Event) {
        let (key, flags) = (event.data.u64(), event.flags);
        match key {
            LISTENER => self.accept(),
            WAKE => self.read_notes(),
            _ => {
                let Some(link) = self.links.get_mut(&key) else { return };
                link.hung_up |= flags.intersects(HUNG_UP);
                link.readable |= link.hung_up || flags.contains(EventFlags::IN);
                self.call_up(key);
            }
        }
    }

    /// Gives a connection a turn in this round.
    fn call_up(&mut self, key: u64) {
        if let Some(link) = self.links.get_mut(&key)
            && !mem::replace(&mut link.queued, true)
        {
            self.fresh.push_back(key);
        }
    }

    fn round(&mut self) {
        for key in mem::take(&mut self.fresh) {
            self.serve(key);
        }
        for _ in 0..HUNGRY_A_ROUND {
            let Some(key) = self.hungry.pop_front() else { break };
            self.serve(key);
        }
    }

    /// One turn of one connection.
    fn serve(&mut self, key: u64) {
        let Some(mut link) = self.links.remove(&key) else { return };
        link.queued = false;
        let mut turn = Turn { parse: PARSED_A_TURN, read: READ_A_TURN };
        if let Err(fault) = self.attend(&mut link, &mut turn) {
            link.line.hang_up(&fault);
        }
        self.settle(link);
    }

    /// Writes what there is to write, and finds out what is next for a connection.
    fn settle(&mut self, mut link: Link) {
        if link.ended && link.parsing.is_none() {
            link.line.end();
        }
        let rest = link.line.tend();
        link.note_times(rest, now());
        if rest == Rest::Over {
            return self.close(link);
        }
        self.watch_room(&mut link, matches!(rest, Rest::Stuck(_)));
        self.count_unfinished(&mut link);
        let more = link.is_heard() && (link.readable || !link.input.is_empty());
        if more || rest == Rest::More {
            link.queued = true;
            self.hungry.push_back(link.key);
        }
        let deadline = link.deadline(&self.options);
        if let Some(deadline) = deadline {
            self.wake_at = Some(self.wake_at.map_or(deadline.at, |at| at.min(deadline.at)));
        }
        self.links.insert(link.key, link);
    }

    /// Has the system tell when there is room to write, or no longer.
    fn watch_room(&self, link: &mut Link, watch: bool) {
        if link.watching_room == watch {
            return;
        }
        let flags = if watch { READING | EventFlags::OUT } else { READING };
        let data = EventData::new_u64(link.key);
        if epoll::modify(&self.epoll, &*link.socket, data, flags).is_ok() {
            link.watching_room = watch;
        }
    }

    /// Reads and hears what a turn allows.
    fn attend(&mut self, link: &mut Link, turn: &mut Turn) -> Result<(), Fault> {
        let kept = mem::take(&mut link.input);
        let mut input = kept.as_slice();
        self.hear(link, &mut input, turn)?;
        if !input.is_empty() {
            link.input = input.to_vec();
            return Ok(());
        }
        let mut buffer = mem::take(&mut self.buffer);
        let heard = self.read(link, &mut buffer, turn);
        self.buffer = buffer;
        heard
    }

    fn read(&mut self, link: &mut Link, buffer: &mut [u8], turn: &mut Turn) -> Result<(), Fault> {
        while link.readable && link.is_heard() && turn.parse > 0 && turn.read > 0 {
            let size = match recv(&link.socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => {
                    (link.readable, link.ended) = (false, true);
                    return Ok(());
                }
                Ok((_, size)) => size,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    link.readable = false;
                    return Ok(());
                }
                Err(_) => {
                    (link.readable, link.ended) = (false, true);
                    return Ok(());
                }
            };
            turn.read = turn.read.saturating_sub(size);
            // Less than there was room for is all there was; what comes later is told.
            link.readable = size == buffer.len() || link.hung_up;
            let mut input = buffer.get(..size).unwrap_or_default();
            self.hear(link, &mut input, turn)?;
            if !input.is_empty() {
                link.input = input.to_vec();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes frames off `input` and acts on them.
    fn hear(&mut self, link: &mut Link, input: &mut &[u8], turn: &mut Turn) -> Result<(), Fault> {
        while turn.parse > 0 && link.is_heard() {
            let Some(frame) = link.decoder.next_frame(input).map_err(frame_fault)? else {
                return Ok(());
            };
            link.since.frame = None;
            turn.parse = turn.parse.saturating_sub(frame.len());
            if frame.len() > SMALL_FRAME {
                link.parsing = Some(frame.len());
                self.parser.parse(link.key, frame);
            } else {
                self.act_on(link, Message::parse(&frame)?)?;
            }
        }
        Ok(())
    }

    fn act_on(&mut self, link: &mut Link, message: Message) -> Result<(), Fault> {
        match message {
            Message::Request { id, method, .. } if method == PING => {
                let _gone = link.line.send(&Message::Response { id, outcome: Ok(self.pong()) });
                Ok(())
            }
            Message::Request { id, method, params } if method == HELLO => {
                let welcomed = self.shake_hands(link, id, params);
                if let Err(fault) = &welcomed {
                    let _gone =
                        link.line.send(&Message::Response { id, outcome: Err(fault.clone()) });
                }
                welcomed
            }
            message => self.pass_on(link, message),
        }
    }

    /// Hands a message to the service, if its sender may speak to it.
    fn pass_on(&self, link: &Link, message: Message) -> Result<(), Fault> {
        let refuse = |fault: &Fault| {
            if let Message::Request { id, .. } = message {
                let outcome = Err(fault.clone());
                let _gone = link.line.send(&Message::Response { id, outcome });
            }
        };
        let Some((peer, _)) = &link.peer else {
            let fault = Fault::new(FaultCode::NoHandshake, "the first message must be `hello`");
            refuse(&fault);
            return Err(fault);
        };
        if matches!(message, Message::Request { .. }) && !peer.may_ask() {
            refuse(&Fault::new(FaultCode::Busy, "too many of your requests are unanswered"));
            return Ok(());
        }
        guarded(|| self.service.received(peer, message))
    }

    fn pong(&self) -> Value {
        json!({
            "pong": true,
            "api": [OLDEST_API_VERSION, API_VERSION],
            "kernel": self.kernel,
            "pid": std::process::id(),
        })
    }

    fn shake_hands(&mut self, link: &mut Link, id: u64, params: Value) -> Result<(), Fault> {
        if link.peer.is_some() {
            return Err(Fault::new(FaultCode::BadParams, "there was a `hello` already"));
        }
        let hello = Hello::from_params(params)?;
        let api = hello.agreed()?;
        let admitted = self.tokens.admit(hello.token, link.process, link.key)?;
        if let Some(earlier) = admitted.earlier.and_then(|key| self.links.remove(&key)) {
            let fault =
                Fault::new(FaultCode::NotYours, "you connected again: this connection is over");
            earlier.line.cut_off(&fault);
            self.close(earlier);
        }
        let who = Who {
            client: admitted.client.clone(),
            name: hello.name,
            api,
            process: link.process,
            open: AtomicUsize::new(0),
        };
        let peer = Peer::new(Arc::clone(&link.line), who);
        link.decoder = FrameDecoder::new(self.options.frame);
        self.shared.peers.fetch_add(1, Ordering::Relaxed);
        let welcome = Welcome {
            api,
            kernel: self.kernel.clone(),
            token: admitted.token,
            client: admitted.client,
        };
        let _gone = peer.answer(id, Ok(welcome.to_result()));
        let joined = guarded(|| self.service.joined(&peer));
        link.peer = Some((peer, admitted.digest));
        joined
    }

    /// What others left for this thread.
    fn read_notes(&mut self) {
        let notes = self.shared.take_notes();
        for key in notes.lines {
            self.call_up(key);
        }
        for (key, message) in notes.parsed {
            let Some(mut link) = self.links.remove(&key) else { continue };
            link.parsing = None;
            let acted = match message {
                _ if link.line.is_ending() => Ok(()),
                Ok(message) => self.act_on(&mut link, message),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = acted {
                link.line.hang_up(&fault);
            }
            self.links.insert(key, link);
            self.call_up(key);
        }
        if notes.stop && self.stopping.is_none() {
            self.stopping = Some(now() + STOPPING);
            self.listener = None;
            let fault = Fault::new(FaultCode::Stopping, "the kernel stops");
            for link in self.links.values() {
                link.line.hang_up(&fault);
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_A_ROUND {
            let Some(listener) = &self.listener else { return };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(listener.socket(), flags) {
                Ok(socket) => self.connected(socket.into()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    return self.stop_accepting();
                }
                Err(_) => return,
            }
        }
    }

    /// Without descriptors, whoever has not shaken hands makes room, and nobody is accepted for a moment: the listener
    /// would wake us without end.
    fn stop_accepting(&mut self) {
        self.drop_a_stranger();
        if let Some(listener) = &self.listener {
            let _not_there = epoll::delete(&self.epoll, listener.socket());
            self.not_accepting = Some(now() + NO_DESCRIPTORS);
        }
    }

    fn connected(&mut self, socket: UnixStream) {
        let Ok(process) = Process::behind(&socket) else { return };
        if process.uid != self.uid && Some(process.uid) != self.options.also {
            let text = "this kernel serves another user";
            return turn_away(&socket, &Fault::new(FaultCode::NotYours, text));
        }
        if self.links.len() >= self.options.connections && !self.drop_a_stranger() {
            let text = "there are too many connections: close some";
            return turn_away(&socket, &Fault::new(FaultCode::Busy, text));
        }
        let key = self.next;
        self.next += 1;
        if epoll::add(&self.epoll, &socket, EventData::new_u64(key), READING).is_err() {
            return;
        }
        let socket = Arc::new(socket);
        let line = Line::new(key, Arc::clone(&socket), Arc::clone(&self.shared));
        let connected = now();
        let link = Link {
            key,
            socket,
            line: Arc::new(line),
            process,
            peer: None,
            decoder: FrameDecoder::new(self.options.first_frame),
            input: Vec::new(),
            readable: false,
            hung_up: false,
            watching_room: false,
            ended: false,
            parsing: None,
            counted: 0,
            queued: false,
            since: Since { connected, frame: None, stuck: None, ending: None },
        };
        self.settle(link);
    }

    /// Makes room by closing the oldest connection that has not shaken hands.
    fn drop_a_stranger(&mut self) -> bool {
        let strangers = self.links.values().filter(|link| link.peer.is_none());
        let oldest = strangers.map(|link| link.key).min();
        let Some(link) = oldest.and_then(|key| self.links.remove(&key)) else { return false };
        link.line.hang_up(&Fault::new(FaultCode::Busy, "others have shaken hands before you"));
        self.close(link);
        true
    }

    /// Counts the memory of large unfinished frames; beyond the limit whoever has most of it goes.
    fn count_unfinished(&mut self, link: &mut Link) {
        let held = link.decoder.held() + link.parsing.unwrap_or(0);
        let counted = if held > UNCOUNTED { held } else { 0 };
        self.unfinished = self.unfinished.saturating_sub(link.counted) + counted;
        link.counted = counted;
        if self.unfinished <= self.options.unfinished {
            return;
        }
        let fault = Fault::new(FaultCode::Busy, "too many large frames at once");
        let largest = self.links.values().max_by_key(|other| other.counted);
        match largest.filter(|other| other.counted > link.counted).map(|other| other.key) {
            Some(key) => {
                if let Some(other) = self.links.remove(&key) {
                    other.line.hang_up(&fault);
                    self.close(other);
                }
            }
            None => {
                link.line.hang_up(&fault);
                self.unfinished = self.unfinished.saturating_sub(link.counted);
                link.counted = 0;
                link.decoder = FrameDecoder::new(self.options.first_frame);
            }
        }
    }

    /// Loses patience with those who are late.
    fn sweep(&mut self) {
        let time = now();
        if self.not_accepting.is_some_and(|until| until <= time) {
            self.not_accepting = None;
            if let Some(listener) = &self.listener {
                let data = EventData::new_u64(LISTENER);
                let _there = epoll::add(&self.epoll, listener.socket(), data, EventFlags::IN);
            }
        }
        if self.wake_at.is_none_or(|at| at > time) {
            return;
        }
        self.wake_at = None;
        let mut over = Vec::new();
        for link in self.links.values() {
            let Some(deadline) = link.deadline(&self.options) else { continue };
            if deadline.at > time {
                self.wake_at = Some(self.wake_at.map_or(deadline.at, |at| at.min(deadline.at)));
                continue;
            }
            match deadline.late {
                Late::Close => over.push(link.key),
                Late::HangUp(fault) => link.line.hang_up(&fault),
                Late::CutOff(fault) => link.line.cut_off(&fault),
            }
        }
        for link in over.iter().filter_map(|key| self.links.remove(key)).collect::<Vec<_>>() {
            self.close(link);
        }
    }

    /// The end of a connection.
    fn close(&mut self, link: Link) {
        let _not_there = epoll::delete(&self.epoll, &*link.socket);
        link.line.close();
        self.unfinished = self.unfinished.saturating_sub(link.counted);
        if let Some((peer, digest)) = &link.peer {
            self.shared.peers.fetch_sub(1, Ordering::Relaxed);
            self.tokens.left(digest, link.key);
            // A service that panics here has nobody left to be told.
            let _panicked = guarded(|| self.service.left(peer));
        }
    }
}

/// Leaves half of the descriptors to the rest of the kernel, and keeps times to what a clock can count.
fn within_reason(options: ServerOptions) -> ServerOptions {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let half = descriptors.map_or(usize::MAX, |all| usize::try_from(all / 2).unwrap_or(usize::MAX));
    ServerOptions {
        connections: options.connections.min(half),
        handshake: options.handshake.min(LONGEST),
        patience: options.patience.min(LONGEST),
        unread: options.unread.min(LONGEST),
        ..options
    }
}

/// Calls the service. One that panics loses this peer, not the thread.
fn guarded(call: impl FnOnce()) -> Result<(), Fault> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| Fault::new(FaultCode::Internal, "the kernel failed over this message"))
}

fn frame_fault(error: FrameError) -> Fault {
    let code = match error {
        FrameError::TooLarge { .. } => FaultCode::TooLarge,
        FrameError::Empty | FrameError::Truncated => FaultCode::Malformed,
    };
    Fault::new(code, &error.to_string())
}

/// Says why a connection is not wanted, as far as that goes without waiting.
fn turn_away(socket: &UnixStream, fault: &Fault) {
    let closed = Message::Event { method: CLOSED.to_owned(), params: fault.to_value() };
    if let Ok(frame) = encode_frame(&closed.to_bytes(), usize::MAX) {
        let _unheard = send(socket, &frame, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}
