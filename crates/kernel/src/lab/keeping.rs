//! A job that stays: the kernel speaks with it now and then, until it is ended.
//!
//! It has a seat only while it is spoken with, and its time passes only while it may work.
//!
//! **Invariant.** It is ended with the lab, and nothing of it outlives whoever keeps it.

use std::sync::Arc;
use std::time::Duration;

use super::conversation::{hear, say, seated};
use super::{Lab, LabError, Talk};
use crate::guest::{Ends, Guest, GuestFailure};
use crate::workshop::Layer;
use crate::{Journal, WorkshopError};

/// A job that stays. Dropping it ends it with everything that it started.
pub(crate) struct Kept {
    guest: Guest,
    sandbox: Arc<dyn fluffy_sandbox::Sandbox>,
    lab: Arc<Lab>,
    /// Hides what must not be seen, as long as it is held.
    _hiding: Option<Layer>,
}

/// How a job that stayed came to its end.
#[derive(Debug)]
pub(crate) struct Ended {
    /// In words.
    pub(crate) end: String,
    /// The end of what it printed to standard error.
    pub(crate) printed: String,
}

/// How much of what it printed is told, in characters.
const MAX_PRINTED: usize = 1_000;

impl Lab {
    /// Starts a job that stays. It changes no folder. The journal is told of its sandbox before it starts; what cannot be
    /// told does not run.
    pub(crate) fn keep(
        self: &Arc<Self>,
        mut talk: Talk,
        journal: &dyn Journal,
    ) -> Result<Kept, LabError> {
        talk.folders.changed.clear();
        let mut job = talk.job();
        let ends = Ends::of(&mut job).map_err(LabError::Pipes)?;
        let frame_bytes = talk.frame_bytes;
        let hiding = self.hiding(&talk)?;
        let over = hiding.as_ref().map(|layer| layer.dir().to_owned());
        let config = self.talking(talk, over, None)?;
        let tell = |life: crate::workshop::Life<'_>| {
            journal.record(life.note()).map(drop).map_err(|error| error.0)
        };
        let sandbox = self.workshop.keep(config, job, &tell)?;
        let started = sandbox.start(self.hearing().of(&sandbox));
        let guest = Guest::started(Arc::clone(&sandbox), ends, frame_bytes);
        let kept = Kept { guest, sandbox, lab: Arc::clone(self), _hiding: hiding };
        started.map_err(WorkshopError::from)?;
        Ok(kept)
    }

    /// Whether every job was ended, and none is run any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.workshop.is_closed()
    }
}

impl Kept {
    /// The sandbox's name in records.
    pub(crate) fn sandbox(&self) -> &str {
        self.sandbox.id()
    }

    /// Sends a frame and waits for the one that answers it, no longer than `limit`.
    pub(crate) fn exchange(
        &mut self,
        frame: &[u8],
        mut limit: Duration,
    ) -> Result<Vec<u8>, GuestFailure> {
        seated(&mut self.guest, &mut limit, |guest, left| {
            say(guest, left, frame)?;
            let payload = hear(guest, left)?;
            // More than was asked for is as wrong as what is no frame.
            if guest.is_ahead() { Err(GuestFailure::Garbled) } else { Ok(payload) }
        })
    }

    /// The next message that it sends by itself.
    pub(crate) fn hear(&mut self, mut wait: Duration) -> Result<Vec<u8>, GuestFailure> {
        seated(&mut self.guest, &mut wait, hear)
    }

    /// Sends a frame, as far as it is taken within the time.
    pub(crate) fn say(&mut self, frame: &[u8], mut wait: Duration) -> Result<(), GuestFailure> {
        seated(&mut self.guest, &mut wait, |guest, left| say(guest, left, frame))
    }

    /// Ends it and tells how it ended.
    pub(crate) fn end(self, journal: &dyn Journal) -> Ended {
        self.sandbox.kill();
        let ended = match self.sandbox.wait() {
            Ok(outcome) => {
                let reached = outcome.reached.first().map(|limit| format!(" ({limit})"));
                let end = format!("{}{}", outcome.end, reached.unwrap_or_default());
                Ended { end, printed: tail(&outcome.stderr.bytes) }
            }
            Err(error) => Ended { end: crate::kernel::causes(&error), printed: String::new() },
        };
        let life = crate::workshop::Life::Gone { id: self.sandbox.id(), end: &ended.end };
        // It is gone whether or not that can be recorded; a ledger that takes nothing more halts the kernel by itself.
        let _told = journal.record(life.note());
        ended
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.lab.workshop.dismiss(&self.sandbox);
    }
}

/// The end of what was printed, without what a terminal would obey.
fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = fluffy_base::sanitised(&text);
    let from = text.char_indices().rev().nth(MAX_PRINTED - 1).map_or(0, |(at, _)| at);
    text.get(from..).unwrap_or_default().trim().to_owned()
}
