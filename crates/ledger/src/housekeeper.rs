//! The thread that syncs, signs and checkpoints, so that appenders do not have to wait for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::LedgerError;
use crate::files::Durability;
use crate::ledger::Shared;

/// The log is moved into the database after this many writes …
const WRITES: u64 = 1000;
/// … or after this time.
const EVERY: Duration = Duration::from_secs(60);
/// How long an operational entry may wait for its sync.
const SOON: Duration = Duration::from_millis(500);

/// Syncs that only clear a backlog are at least so far apart: a flood of entries is not made to wait for
/// the disk three hundred times a second.
const SYNC_EVERY: Duration = Duration::from_millis(50);
/// Signatures are at least so far apart: a flood of refusals is signed ten times a second.
const SIGN_EVERY: Duration = Duration::from_millis(100);

/// What there is to do, and a way to wake who does it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    wants: Mutex<Wants>,
    ring: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Wants {
    /// When what waits for its sync must be synced.
    sync_by: Option<Instant>,
    /// When the last such sync began.
    synced: Option<Instant>,
    /// When the tree must be signed.
    sign_by: Option<Instant>,
    /// When it was signed last.
    signed: Option<Instant>,
    /// Writes since the log was moved last.
    writes: u64,
    stop: bool,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Sync,
    Sign,
    MoveLog,
    Stop,
}

impl Wants {
    /// What is due now, or how long nothing will be.
    fn due(&self, now: Instant, moved: Instant) -> Result<Work, Duration> {
        let move_by = if self.writes >= WRITES { now } else { moved + EVERY };
        let deadlines = [
            (self.sign_by, Work::Sign),
            (self.sync_by, Work::Sync),
            (Some(move_by), Work::MoveLog),
        ];
        if self.stop {
            return Ok(Work::Stop);
        }
        let next = deadlines.into_iter().filter_map(|(by, work)| Some((by?, work)));
        match next.min_by_key(|(by, _)| *by) {
            Some((by, work)) if by <= now => Ok(work),
            Some((by, _)) => Err(by - now),
            None => Err(EVERY),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "paces the housekeeping; no entry depends on it")]
fn now() -> Instant {
    Instant::now()
}

impl Bell {
    /// Something waits for a sync within half a second.
    pub(crate) fn want_sync_soon(&self) {
        let by = now() + SOON;
        self.set(|wants| wants.sync_by = wants.sync_by.or(Some(by)));
    }

    /// Enough waits for a sync: at once, or a moment after the last time.
    pub(crate) fn want_sync_now(&self) {
        let now = now();
        let mut wants = self.lock();
        let by = wants.synced.map_or(now, |synced| now.max(synced + SYNC_EVERY));
        if wants.sync_by.is_none_or(|earlier| by < earlier) {
            wants.sync_by = Some(by);
            self.ring.notify_one();
        }
    }

    /// The tree should be signed: at once, or a moment after the last time.
    pub(crate) fn want_checkpoint(&self) {
        let now = now();
        let mut wants = self.lock();
        if wants.sign_by.is_some() {
            return;
        }
        wants.sign_by = Some(wants.signed.map_or(now, |signed| now.max(signed + SIGN_EVERY)));
        self.ring.notify_one();
    }

    /// Entries were written.
    pub(crate) fn count_writes(&self, count: u64) {
        let mut wants = self.lock();
        wants.writes += count;
        if wants.writes >= WRITES {
            self.ring.notify_one();
        }
    }

    /// The thread should end.
    pub(crate) fn stop(&self) {
        self.set(|wants| wants.stop = true);
    }

    fn set(&self, change: impl FnOnce(&mut Wants)) {
        change(&mut self.lock());
        self.ring.notify_one();
    }

    /// Waits until something is due, and takes it off the list.
    fn wait(&self, moved: Instant) -> Work {
        let mut wants = self.lock();
        loop {
            let now = now();
            match wants.due(now, moved) {
                Ok(work) => {
                    match work {
                        Work::Sync => (wants.sync_by, wants.synced) = (None, Some(now)),
                        Work::Sign => (wants.sign_by, wants.signed) = (None, Some(now)),
                        Work::MoveLog => wants.writes = 0,
                        Work::Stop => {}
                    }
                    return work;
                }
                Err(idle) => {
                    let waited = self.ring.wait_timeout(wants, idle);
                    (wants, _) = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wants> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread.
pub(crate) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>, LedgerError> {
    let own = shared.connect()?;
    let work = move || {
        let mut moved = now();
        loop {
            // A failure here stops the ledger by its own means: a failed sync is remembered by the
            // syncer, and the next appender hears of it. A checkpoint that could not be moved or
            // remembered is tried again with the next one, and at the latest on closing.
            match shared.bell.wait(moved) {
                Work::Sync => drop(shared.sync_all()),
                Work::Sign => drop(shared.remember(Durability::Written)),
                Work::MoveLog => {
                    moved = now();
                    drop(shared.checkpoint_wal(&own));
                }
                Work::Stop => return,
            }
        }
    };
    thread::Builder::new()
        .name("ledger".to_owned())
        .spawn(work)
        .map_err(LedgerError::file("start the housekeeper of", "the ledger"))
}
