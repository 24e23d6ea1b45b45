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

/// What there is to do, and a way to wake who does it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    wants: Mutex<Wants>,
    ring: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Wants {
    /// Since when something waits for its sync.
    sync_soon: Option<Instant>,
    sync_now: bool,
    checkpoint: bool,
    writes: u64,
    stop: bool,
}

impl Wants {
    fn urgent(&self) -> bool {
        self.sync_now || self.checkpoint || self.stop || self.writes >= WRITES
    }

    fn anything(&self) -> bool {
        self.urgent() || self.sync_soon.is_some()
    }
}

impl Bell {
    /// Something waits for a sync within half a second.
    #[expect(clippy::disallowed_methods, reason = "paces the syncs; no entry depends on it")]
    pub(crate) fn want_sync_soon(&self) {
        let now = Instant::now();
        self.set(|wants| wants.sync_soon = wants.sync_soon.or(Some(now)));
    }

    /// Enough waits for a sync.
    pub(crate) fn want_sync_now(&self) {
        self.set(|wants| wants.sync_now = true);
    }

    /// The tree should be signed.
    pub(crate) fn want_checkpoint(&self) {
        self.set(|wants| wants.checkpoint = true);
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

    /// Waits until there is something to do: at once for what is urgent, within half a second for a
    /// sync, after `longest` in any case.
    fn wait(&self, longest: Duration) -> Wants {
        let idle = |wants: &mut Wants| !wants.anything();
        let wants = self.ring.wait_timeout_while(self.lock(), longest, idle);
        let (wants, _) = wants.unwrap_or_else(PoisonError::into_inner);
        let patient = |wants: &mut Wants| wants.sync_soon.is_some() && !wants.urgent();
        let waited = wants.sync_soon.map_or(Duration::ZERO, |since| since.elapsed());
        let wants = self.ring.wait_timeout_while(wants, SOON.saturating_sub(waited), patient);
        let (mut wants, _) = wants.unwrap_or_else(PoisonError::into_inner);
        let taken = *wants;
        *wants = Wants { stop: taken.stop, writes: taken.writes, ..Wants::default() };
        taken
    }

    /// The log is in the database: counting starts again.
    fn forget_writes(&self, count: u64) {
        let mut wants = self.lock();
        wants.writes = wants.writes.saturating_sub(count);
    }

    fn lock(&self) -> MutexGuard<'_, Wants> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread.
#[expect(clippy::disallowed_methods, reason = "paces the checkpoints; no entry depends on it")]
pub(crate) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>, LedgerError> {
    let own = shared.connect()?;
    let work = move || {
        let mut moved = Instant::now();
        loop {
            let wants = shared.bell.wait(EVERY.saturating_sub(moved.elapsed()));
            if wants.stop {
                return;
            }
            // A failure here stops the ledger by its own means: a failed sync is remembered by the
            // syncer, and the next appender hears of it. A checkpoint that could not be moved or
            // remembered is tried again with the next one, and at the latest on closing.
            let _ = shared.sync_all();
            if wants.checkpoint {
                let _ = shared.remember(Durability::Written);
            }
            if wants.writes >= WRITES || moved.elapsed() >= EVERY {
                moved = Instant::now();
                shared.bell.forget_writes(wants.writes);
                if wants.writes > 0 {
                    let _ = shared.checkpoint_wal(&own);
                }
            }
        }
    };
    thread::Builder::new()
        .name("ledger".to_owned())
        .spawn(work)
        .map_err(LedgerError::file("start the housekeeper of", "the ledger"))
}
