//! One connection as the server's thread sees it.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_base::{Digest, Fault, FaultCode, FrameDecoder};

use super::line::{Line, Rest, too_slow};
use super::peer::Peer;
use super::process::Process;
use super::server::ServerOptions;

/// With so much on its way to it, a peer is not listened to: it should read first.
const PAUSE_AT: usize = 256 << 10;

/// How long a peer may take to read why it was hung up on.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection.
pub(super) struct Link {
    pub(super) key: u64,
    pub(super) socket: Arc<UnixStream>,
    pub(super) line: Arc<Line>,
    pub(super) process: Process,
    /// Who it is, once it has shaken hands.
    pub(super) peer: Option<(Peer, Digest)>,
    pub(super) decoder: FrameDecoder,
    /// Read and not yet looked at.
    pub(super) input: Vec<u8>,
    /// Whether there may be more to read.
    pub(super) readable: bool,
    /// Whether the system said that the peer is ending: then it is read from until there is nothing more.
    pub(super) hung_up: bool,
    /// Whether the system tells when there is room to write.
    pub(super) watching_room: bool,
    /// Whether the peer has said its last.
    pub(super) ended: bool,
    /// The bytes of the frame that is being parsed elsewhere.
    pub(super) parsing: Option<usize>,
    /// What of it counts against the limit on unfinished frames.
    pub(super) counted: usize,
    /// Whether it waits for its turn.
    pub(super) queued: bool,
    pub(super) since: Since,
}

/// When what began.
pub(super) struct Since {
    pub(super) connected: Instant,
    pub(super) frame: Option<Instant>,
    pub(super) stuck: Option<Instant>,
    pub(super) ending: Option<Instant>,
}

/// What a connection has until when.
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) late: Late,
}

/// What to do about one that is late.
pub(super) enum Late {
    /// Close it.
    Close,
    /// Say why and hang up.
    HangUp(Fault),
    /// The same, without what is queued.
    CutOff(Fault),
}

impl Link {
    /// Whether what it says may be looked at now.
    pub(super) fn is_heard(&self) -> bool {
        self.parsing.is_none() && !self.line.is_ending() && self.line.cost() <= PAUSE_AT
    }

    /// Remembers since when a frame has been unfinished and output stuck.
    pub(super) fn note_times(&mut self, rest: Rest, now: Instant) {
        let between = self.decoder.finish().is_ok();
        self.since.frame = if between { None } else { self.since.frame.or(Some(now)) };
        self.since.stuck = if let Rest::Stuck(since) = rest { Some(since) } else { None };
        if self.line.is_ending() {
            self.since.ending.get_or_insert(now);
        }
    }

    /// What would be the next reason to lose patience.
    pub(super) fn deadline(&self, options: &ServerOptions) -> Option<Deadline> {
        let ServerOptions { handshake, patience, unread, .. } = *options;
        if let Some(since) = self.since.ending {
            return Some(Deadline { at: since + LAST_WORDS, late: Late::Close });
        }
        let stuck = self
            .since
            .stuck
            .map(|since| Deadline { at: since + unread, late: Late::CutOff(too_slow()) });
        let late = |text| Late::HangUp(Fault::new(FaultCode::TooSlow, text));
        let frame = self.since.frame.filter(|_| self.parsing.is_none()).map(|since| Deadline {
            at: since + patience,
            late: late("you do not finish the frame that you began"),
        });
        let stranger = self.peer.is_none().then(|| Deadline {
            at: self.since.connected + handshake,
            late: Late::HangUp(Fault::new(FaultCode::NoHandshake, "there was no `hello` in time")),
        });
        [stuck, frame, stranger].into_iter().flatten().min_by_key(|deadline| deadline.at)
    }
}
