//! A client as the service sees it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fluffy_base::{ClientId, Fault, Message};
use serde_json::Value;

use super::line::{Gone, Line};
use super::process::Process;

/// How many requests of one peer may wait for their answers.
const MAX_OPEN: usize = 1_000;

/// A client that has shaken hands. Clones are the same one; keeping it keeps no connection open.
#[derive(Clone)]
pub struct Peer {
    line: Arc<Line>,
    who: Arc<Who>,
}

/// Who it is, which does not change while it is connected.
pub(super) struct Who {
    pub(super) client: ClientId,
    pub(super) name: String,
    pub(super) api: u32,
    pub(super) process: Process,
    /// How many of its requests wait for their answers.
    pub(super) open: AtomicUsize,
}

impl Peer {
    pub(super) fn new(line: Arc<Line>, who: Who) -> Self {
        Self { line, who: Arc::new(who) }
    }

    /// Counts a request that will be answered; false where too many wait already.
    pub(super) fn may_ask(&self) -> bool {
        let more = |open| (open < MAX_OPEN).then_some(open + 1);
        self.who.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// The client's id, which stays the same when it connects again with its token.
    pub fn id(&self) -> ClientId {
        self.who.client.clone()
    }

    /// Its user, as the system says.
    pub fn uid(&self) -> u32 {
        self.who.process.uid
    }

    /// Its process, as the system says; 0 where it has no number in the kernel's namespace.
    pub fn pid(&self) -> u32 {
        self.who.process.pid
    }

    /// What it calls itself. Proves nothing.
    pub fn name(&self) -> &str {
        &self.who.name
    }

    /// The version that was agreed on.
    pub fn api(&self) -> u32 {
        self.who.api
    }

    /// Whether its process still runs and has a controlling terminal. The kernel looks anew each time.
    pub fn has_terminal(&self) -> bool {
        self.who.process.has_terminal()
    }

    /// Whether it is the same connection, not only the same client.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }

    /// Sends a message, or queues it; never blocks. A peer that does not read is hung up on.
    ///
    /// Values follow the rules of [`fluffy_base::Json`]: no integer beyond 2^53 − 1, not too deep. A client hangs up
    /// over others.
    pub fn send(&self, message: Message) -> Result<(), Gone> {
        if matches!(message, Message::Response { .. }) {
            let fewer = |open: usize| open.checked_sub(1);
            let _none_open =
                self.who.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        }
        self.line.send(&message)
    }

    /// Answers a request. Every request must be answered in the end: a peer with too many open ones is told to wait.
    pub fn answer(&self, id: u64, outcome: Result<Value, Fault>) -> Result<(), Gone> {
        self.send(Message::Response { id, outcome })
    }

    /// Sends what is queued, says why and hangs up.
    pub fn hang_up(&self, fault: Fault) {
        self.line.hang_up(&fault);
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("id", &self.id()).field("pid", &self.pid()).finish()
    }
}
