//! What is on its way to one peer.
//!
//! **Invariant.** Sending never blocks. A queue holds at most its limit and one frame more; a peer that lets it grow
//! beyond is cut off. What is sent arrives whole and in order, or the connection ends.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fluffy_base::{Fault, FaultCode, Message, encode_frame};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::os::fd::OwnedFd;

use super::CLOSED;
use crate::guest::now;

/// How much is written in one go before others have their turn.
const WRITE_AT_ONCE: usize = 256 << 10;

/// What a queued frame costs besides its bytes.
const FRAME_COST: usize = 64;

/// The share of a peer once all queues together are over their limit.
const SHARE: usize = 256 << 10;

/// The peer is not there any more, or hung up on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct Gone;

/// What the server's thread and everybody else share.
pub(super) struct Shared {
    wake: OwnedFd,
    notes: Mutex<Notes>,
    limits: Limits,
    /// Bytes in all queues.
    queued: AtomicUsize,
    /// Peers that have shaken hands.
    pub(super) peers: AtomicUsize,
}

/// How much may wait to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The largest frame.
    pub(super) frame: usize,
    /// For one peer.
    pub(super) queue: usize,
    /// For all of them; beyond it everyone's limit is small.
    pub(super) all_queues: usize,
}

/// What the server's thread should look at.
#[derive(Default)]
pub(super) struct Notes {
    /// Connections with something to write, or to be closed.
    pub(super) lines: Vec<u64>,
    /// Large frames that have been parsed.
    pub(super) parsed: Vec<(u64, Result<Message, Fault>)>,
    /// Whether it is time to end.
    pub(super) stop: bool,
}

impl Shared {
    pub(super) fn new(limits: Limits) -> std::io::Result<Self> {
        Ok(Self {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            notes: Mutex::default(),
            limits,
            queued: AtomicUsize::new(0),
            peers: AtomicUsize::new(0),
        })
    }

    pub(super) fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    /// Leaves a note for the server's thread and wakes it.
    pub(super) fn note(&self, write: impl FnOnce(&mut Notes)) {
        write(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        // It fails only when it is full of wake-ups already.
        let _full = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Takes the notes; the next one wakes again.
    pub(super) fn take_notes(&self) -> Notes {
        let _empty = rustix::io::read(&self.wake, &mut [0_u8; 8]);
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = notes.stop;
        std::mem::replace(&mut *notes, Notes { stop, ..Notes::default() })
    }
}

/// The way to one peer.
pub(super) struct Line {
    key: u64,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

struct State {
    /// Nothing once the connection is closed, so that whoever keeps a peer keeps no descriptor.
    socket: Option<Arc<UnixStream>>,
    queue: VecDeque<Vec<u8>>,
    /// How much of the first frame is sent.
    sent: usize,
    /// What the queue costs.
    cost: usize,
    /// Since when nothing could be written.
    stuck: Option<Instant>,
    ending: bool,
    noted: bool,
}

/// What is left to do for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing.
    Nothing,
    /// More could be written at once.
    More,
    /// The peer must read first; since then.
    Stuck(Instant),
    /// It is over: close it.
    Over,
}

impl Line {
    pub(super) fn new(key: u64, socket: Arc<UnixStream>, shared: Arc<Shared>) -> Self {
        let state = State {
            socket: Some(socket),
            queue: VecDeque::new(),
            sent: 0,
            cost: 0,
            stuck: None,
            ending: false,
            noted: false,
        };
        Self { key, shared, state: Mutex::new(state) }
    }

    pub(super) fn send(&self, message: &Message) -> Result<(), Gone> {
        match encode_frame(&message.to_bytes(), self.shared.limits.frame) {
            Ok(frame) => self.enqueue(frame),
            Err(error) => self.send_instead(message, &error.to_string()),
        }
    }

    /// Says why, and that it is the last.
    pub(super) fn hang_up(&self, fault: &Fault) {
        let closed = Message::Event { method: CLOSED.to_owned(), params: fault.to_value() };
        let frame = encode_frame(&closed.to_bytes(), self.shared.limits.frame).unwrap_or_default();
        let mut state = self.state();
        if !state.ending && state.socket.is_some() {
            state.push(frame, &self.shared);
            state.ending = true;
            state.write(&self.shared);
        }
        self.note(&mut state);
    }

    /// Sends what is queued and no more.
    pub(super) fn end(&self) {
        self.state().ending = true;
    }

    pub(super) fn is_ending(&self) -> bool {
        self.state().ending
    }

    /// How much waits to be sent.
    pub(super) fn cost(&self) -> usize {
        self.state().cost
    }

    /// Writes what can be written; for the server's thread.
    pub(super) fn tend(&self) -> Rest {
        let mut state = self.state();
        state.noted = false;
        state.write(&self.shared);
        state.rest()
    }

    /// Lets go of the socket.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.drop_queue(&self.shared);
        state.socket = None;
        state.ending = true;
    }

    /// Cuts off a peer that does not read: what is queued is dropped, but for a frame already begun.
    pub(super) fn cut_off(&self, fault: &Fault) {
        let mut state = self.state();
        state.cut(&self.shared);
        drop(state);
        self.hang_up(fault);
    }

    fn enqueue(&self, frame: Vec<u8>) -> Result<(), Gone> {
        let mut state = self.state();
        if state.ending || state.socket.is_none() {
            return Err(Gone);
        }
        let crowded = self.shared.queued.load(Ordering::Relaxed) > self.shared.limits.all_queues;
        let limit = self.shared.limits.queue;
        if state.cost > if crowded { SHARE.min(limit) } else { limit } {
            drop(state);
            self.cut_off(&too_slow());
            return Err(Gone);
        }
        let first = state.queue.is_empty();
        state.push(frame, &self.shared);
        if first {
            state.write(&self.shared);
        }
        if state.rest() != Rest::Nothing {
            self.note(&mut state);
        }
        Ok(())
    }

    /// What is too large for a frame: an answer becomes a refusal, and anything else ends the connection, since the
    /// peer would miss it without knowing.
    fn send_instead(&self, message: &Message, why: &str) -> Result<(), Gone> {
        let fault = Fault::new(FaultCode::TooLarge, why);
        match message {
            Message::Response { id, .. } => {
                let refusal = Message::Response { id: *id, outcome: Err(fault) };
                let frame = encode_frame(&refusal.to_bytes(), self.shared.limits.frame);
                self.enqueue(frame.map_err(|_| Gone)?)
            }
            Message::Request { .. } | Message::Event { .. } => {
                self.hang_up(&fault);
                Err(Gone)
            }
        }
    }

    fn note(&self, state: &mut State) {
        if !state.noted {
            state.noted = true;
            self.shared.note(|notes| notes.lines.push(self.key));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nobody panics while holding it; if somebody did, the queue is still one of whole frames.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close();
    }
}

impl State {
    fn push(&mut self, frame: Vec<u8>, shared: &Shared) {
        let cost = frame.len() + FRAME_COST;
        self.cost += cost;
        shared.queued.fetch_add(cost, Ordering::Relaxed);
        self.queue.push_back(frame);
    }

    fn pop(&mut self, shared: &Shared) {
        if let Some(frame) = self.queue.pop_front() {
            let cost = frame.len() + FRAME_COST;
            self.cost = self.cost.saturating_sub(cost);
            shared.queued.fetch_sub(cost, Ordering::Relaxed);
        }
        self.sent = 0;
    }

    /// Keeps the frame that is partly sent, for without its end nothing after it could be read.
    fn cut(&mut self, shared: &Shared) {
        let begun = self.queue.pop_front().filter(|_| self.sent > 0);
        self.drop_queue(shared);
        if let Some(frame) = begun {
            self.push(frame, shared);
        } else {
            self.sent = 0;
        }
    }

    fn drop_queue(&mut self, shared: &Shared) {
        shared.queued.fetch_sub(self.cost, Ordering::Relaxed);
        self.cost = 0;
        self.queue.clear();
    }

    fn write(&mut self, shared: &Shared) {
        let Some(socket) = self.socket.clone() else { return };
        let mut left = WRITE_AT_ONCE;
        while let Some(frame) = self.queue.front() {
            let rest = frame.get(self.sent..).unwrap_or_default();
            if left == 0 {
                return;
            }
            let part = rest.get(..left.min(rest.len())).unwrap_or_default();
            match send(&socket, part, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(written) => {
                    self.stuck = None;
                    self.sent += written;
                    left = left.saturating_sub(written);
                    if written == rest.len() {
                        self.pop(shared);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.stuck.get_or_insert_with(now);
                    return;
                }
                Err(_) => {
                    // Nobody is there to read the rest.
                    self.ending = true;
                    self.drop_queue(shared);
                    return;
                }
            }
        }
    }

    fn rest(&self) -> Rest {
        match (self.queue.is_empty(), self.ending, self.stuck) {
            (true, true, _) => Rest::Over,
            (true, false, _) => Rest::Nothing,
            (false, _, Some(since)) => Rest::Stuck(since),
            (false, _, None) => Rest::More,
        }
    }
}

pub(super) fn too_slow() -> Fault {
    Fault::new(
        FaultCode::TooSlow,
        "you do not read what you are sent: connect again and read faster",
    )
}
