//! The open ledger: many appenders, one chain, one writer.
//!
//! Appending is three steps, so that threads overlap:
//!
//! 1. *chain*: the record gets its number and its hash, in memory;
//! 2. *writer*: one thread writes everything that is waiting, in one transaction. After this the entry
//!    survives the death of the process;
//! 3. *syncer*: for what must be durable, one thread syncs the write-ahead log for all that was
//!    committed. After this the entry survives a power cut.
//!
//! **Invariant.** A number is given once. After a failed write nothing more is accepted, because the
//! chain in memory is then ahead of the chain on disk.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fluffy_base::{Clock, Digest};
use rusqlite::Connection;

use crate::chain::Chain;
use crate::checkpoint::{Checkpoint, CheckpointError, SignedCheckpoint, cosign_note};
use crate::files::{self, Durability, Lock};
use crate::group::Group;
use crate::housekeeper::{self, Bell};
use crate::merkle::Frontier;
use crate::recovery::{self, Opened};
use crate::store::{NewRow, Written};
use crate::{
    Appended, Blob, Break, EvidenceBundle, Layout, LedgerError, Origin, Record, Retained,
    RetentionOptions, Segment, SigningKey, VerifyingKey, retention, rotation, store,
};

/// A power cut may lose this many operational entries …
const UNSYNCED_ENTRIES: u64 = 100;
/// … or those of this many milliseconds.
const UNSYNCED_MS: u64 = 500;

/// How often whoever is about to sync looks for those who were served by the last sync and have not
/// left yet …
const MAX_COURTESY: u32 = 32;
/// … and for others who want to come along.
const MIN_COURTESY: u32 = 2;
/// A transaction that others keep adding to ends here.
const MAX_ROWS: usize = 1024;
/// How often it tries to get at the chain before it sleeps: some microseconds.
const SPINS: u32 = 500;

/// What is needed to open a ledger.
pub struct LedgerConfig {
    /// Where its files lie.
    pub layout: Layout,
    /// The user's key.
    pub key: SigningKey,
    /// Who opens it. The kernel id counts only for a new ledger; an old one keeps its own.
    pub origin: Origin,
    /// Tells the time of entries that the ledger writes about itself.
    pub clock: Arc<dyn Clock>,
    /// How long entries are kept, and how much room they may take.
    pub retention: RetentionOptions,
}

/// What opening a ledger found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenReport {
    /// The segment that is written to.
    pub segment: u32,
    /// How many entries it has.
    pub entries: u64,
    /// The damage that was found, recorded and set aside, if any.
    pub broken: Option<Break>,
    /// What was done about old entries.
    pub retained: Retained,
}

/// A record that has its place in the chain and is not yet known to be written.
#[derive(Debug)]
#[must_use = "an entered record is acknowledged only by `Ledger::settle`"]
pub struct Entered {
    /// Its place; a record that is too large was given none.
    place: Result<Appended, LedgerError>,
    durable: bool,
    ts_ms: u64,
}

/// An open ledger. Dropping it writes and signs what is left.
pub struct Ledger {
    shared: Arc<Shared>,
    housekeeper: Option<JoinHandle<()>>,
    origin: Origin,
    report: OpenReport,
    // Last: released only after everything is written.
    _lock: Lock,
}

/// What appenders and the housekeeper share.
pub(crate) struct Shared {
    layout: Layout,
    segment: u32,
    pub(crate) path: PathBuf,
    checkpoint_origin: String,
    pub(crate) keys: Mutex<Keys>,
    /// Held while a checkpoint is signed and remembered, so that a later one never gives way to an
    /// earlier one.
    memory: Mutex<()>,
    chain: Mutex<Chain>,
    committing: Group,
    writer: Mutex<Writer>,
    syncing: Group,
    syncer: Mutex<Syncer>,
    /// How many threads are in [`Shared::acknowledge`].
    inside: AtomicU32,
    /// Entries that have their place in the chain.
    entered: AtomicU64,
    /// Entries that are in the database.
    committed: AtomicU64,
    /// Entries that survive a power cut.
    synced: AtomicU64,
    /// Time of the oldest entry that is not synced.
    oldest_unsynced_ms: AtomicU64,
    pub(crate) bell: Bell,
}

/// The key that signs and, while it is being replaced, the one that will: checkpoints then hold for
/// both.
pub(crate) struct Keys {
    pub(crate) current: SigningKey,
    pub(crate) next: Option<SigningKey>,
}

struct Writer {
    connection: Connection,
    failed: Option<String>,
}

struct Syncer {
    wal: File,
    failed: Option<String>,
}

impl Ledger {
    /// Opens the ledger, checks it against the remembered checkpoint, and sets aside what is broken.
    pub fn open(config: LedgerConfig) -> Result<Self, LedgerError> {
        config.layout.make_dirs()?;
        let lock = Lock::take(&config.layout.lock())?;
        let opened = recovery::open(&config)?;
        let (clock, retention) = (Arc::clone(&config.clock), config.retention);
        let origin = Origin { kernel_id: opened.kernel_id.clone(), ..config.origin };
        let report = OpenReport {
            segment: opened.segment,
            entries: opened.frontier.size(),
            broken: opened.broken.clone(),
            retained: Retained::default(),
        };
        files::remove(&config.layout.clean_mark())?;
        let shared = Arc::new(Shared::new(config.layout, config.key, opened)?);
        let housekeeper = Some(housekeeper::start(Arc::clone(&shared))?);
        let mut ledger = Self { shared, housekeeper, origin, report, _lock: lock };
        rotation::resume(&ledger.shared, |statement| {
            ledger.append(rotation::late_entry(clock.now_ms(), &ledger.origin, statement))
        })?;
        let now_ms = clock.now_ms();
        ledger.report.retained = retention::run(&ledger, &ledger.shared, &retention, now_ms);
        Ok(ledger)
    }

    /// Appends a record: [`Ledger::enter`] and [`Ledger::settle`] in one.
    pub fn append(&self, record: Record) -> Result<Appended, LedgerError> {
        self.settle(self.enter(record))
    }

    /// Gives a record its place in the chain, at once and without waiting for a disk. Whoever has to
    /// decide something together with that place does both under one lock and settles after it.
    pub fn enter(&self, record: Record) -> Entered {
        let durable = record.must_be_durable();
        let ts_ms = record.ts_ms;
        let place = record.check_size().map(|()| {
            let input = record.input.as_ref().map(Blob::hash);
            let mut chain = lock(&self.shared.chain);
            let appended = chain.push(record, input);
            self.shared.entered.store(chain.size(), Ordering::Release);
            appended
        });
        Entered { place, durable, ts_ms }
    }

    /// Waits until an entered record is written. When this returns, the entry survives the death of
    /// the process; if it is a security event, a refusal or the decision before an effect, it
    /// survives a power cut.
    pub fn settle(&self, entered: Entered) -> Result<Appended, LedgerError> {
        let Entered { place, durable, ts_ms } = entered;
        let appended = place?;
        if durable {
            self.shared.acknowledge(appended.seq)?;
            self.shared.bell.want_checkpoint();
        } else {
            self.shared.commit(appended.seq)?;
            self.shared.limit_unsynced(appended.seq, ts_ms)?;
        }
        Ok(appended)
    }

    /// What opening found.
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Who writes: the origin given at opening, with the ledger's own kernel id.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How many entries there are.
    pub fn size(&self) -> u64 {
        lock(&self.shared.chain).size()
    }

    /// Hash of the last entry, or 64 zeros.
    pub fn head(&self) -> Digest {
        lock(&self.shared.chain).head()
    }

    /// Where its files lie.
    pub fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// The key that signs now.
    pub fn verifying_key(&self) -> VerifyingKey {
        lock(&self.shared.keys).current.verifying_key().clone()
    }

    /// The database of the segment that is written to.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Makes everything durable, signs the tree and remembers the checkpoint; gives its text.
    pub fn checkpoint(&self) -> Result<String, LedgerError> {
        self.shared.remember(Durability::Synced)
    }

    /// The same, read back.
    pub fn signed_state(&self) -> Result<Checkpoint, LedgerError> {
        let text = self.checkpoint()?;
        let key = lock(&self.shared.keys).current.verifying_key().clone();
        Ok(SignedCheckpoint::parse(&text)?.verify(&key)?)
    }

    /// How many entries are known to survive a power cut.
    pub fn synced(&self) -> u64 {
        self.shared.synced.load(Ordering::Acquire)
    }

    /// Replaces the signing key, whose file is at `path`, by the one of a fresh `seed`. The rotation
    /// becomes an entry, made of `record`, that both keys signed.
    ///
    /// Interrupted anywhere, the old key or the new one is in the file, the remembered checkpoint
    /// holds for it, and opening finishes or forgets the rotation accordingly.
    pub fn rotate_key(
        &self,
        path: &Path,
        seed: [u8; 32],
        record: Record,
    ) -> Result<Appended, LedgerError> {
        rotation::run(&self.shared, path, seed, |statement| {
            self.append(rotation::entry(record, statement))
        })
    }

    /// Everything in the segment that is written to, for verifying in memory.
    pub fn evidence(&self, exported_at_ms: u64) -> Result<EvidenceBundle, LedgerError> {
        let segment = Segment::open(&self.shared.layout, self.shared.segment)?;
        EvidenceBundle::collect(&segment, &lock(&self.shared.keys).current, exported_at_ms)
    }

    /// Writes, signs and closes; keeps a snapshot. Nothing may be appended afterwards. Dropping does
    /// the same without telling of errors.
    pub fn close(&mut self) -> Result<(), LedgerError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), LedgerError> {
        let Some(thread) = self.housekeeper.take() else { return Ok(()) };
        self.shared.bell.stop();
        if thread.join().is_err() {
            return Err(LedgerError::Stopped("the housekeeper panicked".to_owned()));
        }
        self.shared.remember(Durability::Synced)?;
        lock(&self.shared.writer).failed = Some("it was closed".to_owned());
        self.shared.empty_wal()?;
        let size = self.size();
        recovery::snapshot(&self.shared.layout, self.shared.segment, size)?;
        let mark = recovery::clean_text(size);
        files::replace(&self.shared.layout.clean_mark(), mark.as_bytes(), Durability::Written)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // A caller who wants to hear of errors calls `close`; everything acknowledged is on disk
        // already, and an unclean end is checked at the next opening.
        drop(self.finish());
    }
}

impl Shared {
    fn new(layout: Layout, key: SigningKey, opened: Opened) -> Result<Self, LedgerError> {
        let path = layout.segment(opened.segment);
        let wal_path = wal_of(&path);
        let wal = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&wal_path)
            .map_err(LedgerError::file("open", &wal_path))?;
        let size = opened.frontier.size();
        Ok(Self {
            checkpoint_origin: recovery::checkpoint_origin(&opened.kernel_id, opened.segment),
            segment: opened.segment,
            layout,
            path,
            keys: Mutex::new(Keys { current: key, next: None }),
            memory: Mutex::new(()),
            chain: Mutex::new(Chain::new(opened.head, opened.frontier)),
            committing: Group::default(),
            writer: Mutex::new(Writer { connection: opened.connection, failed: None }),
            syncing: Group::default(),
            syncer: Mutex::new(Syncer { wal, failed: None }),
            inside: AtomicU32::new(0),
            entered: AtomicU64::new(size),
            committed: AtomicU64::new(size),
            synced: AtomicU64::new(size),
            oldest_unsynced_ms: AtomicU64::new(u64::MAX),
            bell: Bell::default(),
        })
    }

    /// Waits until entry `seq` is written, with everything else that waits.
    fn commit(&self, seq: u64) -> Result<(), LedgerError> {
        self.commit_with(seq, Vec::new)
    }

    /// The same; `more` is asked for what has come while it was written.
    fn commit_with(&self, seq: u64, more: impl FnMut() -> Vec<NewRow>) -> Result<(), LedgerError> {
        self.committing
            .join(|| self.committed.load(Ordering::Acquire) > seq, || self.write_all(more))
    }

    /// Writes everything that waits, and what comes meanwhile, in one transaction.
    fn write_all(&self, more: impl FnMut() -> Vec<NewRow>) -> Result<(), LedgerError> {
        let mut writer = lock(&self.writer);
        let rows = lock(&self.chain).take_pending();
        if let Some(reason) = &writer.failed {
            return Err(LedgerError::Stopped(reason.clone()));
        }
        if rows.is_empty() {
            return Ok(());
        }
        match store::insert(&writer.connection, rows, more) {
            Ok(Written { size, rows }) => {
                self.committed.store(size, Ordering::Release);
                self.bell.count_writes(rows);
                Ok(())
            }
            Err(error) => {
                writer.failed = Some(error.to_string());
                Err(LedgerError::database("appending")(error))
            }
        }
    }

    /// Makes entry `seq` and all before it durable for an appender, who may come again.
    fn acknowledge(&self, seq: u64) -> Result<(), LedgerError> {
        self.inside.fetch_add(1, Ordering::Relaxed);
        let synced = self.sync(seq);
        self.inside.fetch_sub(1, Ordering::Relaxed);
        synced
    }

    /// Makes entry `seq` and all before it durable.
    ///
    /// A sync costs more than everything else together, so it pays to take others along: what they
    /// enter while the first rows are written goes into the same transaction.
    pub(crate) fn sync(&self, seq: u64) -> Result<(), LedgerError> {
        self.syncing.join(
            || self.synced.load(Ordering::Acquire) > seq,
            || {
                let (mut rows, mut taken) = (0, 0);
                self.commit_with(seq, || {
                    let more =
                        if rows < MAX_ROWS { self.late_rows(&mut taken) } else { Vec::new() };
                    rows += more.len();
                    more
                })?;
                self.sync_log()
            },
        )
    }

    /// What others have entered after the first `taken`, after a moment for those who are about to.
    /// Whoever is alone waits for nobody.
    fn late_rows(&self, taken: &mut u64) -> Vec<NewRow> {
        let mut looked = 0;
        loop {
            let inside = u64::from(self.inside.load(Ordering::Relaxed));
            let mut size = self.entered.load(Ordering::Acquire);
            let mut rows = Vec::new();
            if size > *taken {
                let mut chain = self.chain_soon();
                (rows, size) = (chain.take_pending(), chain.size());
                *taken = size;
            }
            // Those inside whose entries are durable were served, and have only to be given a processor.
            let waiting = size.saturating_sub(self.synced.load(Ordering::Acquire));
            let patience = match inside {
                0 | 1 => 0,
                _ if inside > waiting => MAX_COURTESY,
                _ => MIN_COURTESY,
            };
            if !rows.is_empty() || looked >= patience {
                return rows;
            }
            std::thread::yield_now();
            looked += 1;
        }
    }

    /// The chain, for one whom all others wait for: it is held for the time of a few hashes, and
    /// going to sleep for that costs ten times as much.
    fn chain_soon(&self) -> MutexGuard<'_, Chain> {
        for _ in 0..SPINS {
            if let Ok(chain) = self.chain.try_lock() {
                return chain;
            }
            std::hint::spin_loop();
        }
        lock(&self.chain)
    }

    /// Makes everything durable that is written.
    pub(crate) fn sync_log(&self) -> Result<(), LedgerError> {
        let mut syncer = lock(&self.syncer);
        if let Some(reason) = &syncer.failed {
            return Err(LedgerError::Stopped(reason.clone()));
        }
        self.oldest_unsynced_ms.store(u64::MAX, Ordering::Release);
        let size = self.committed.load(Ordering::Acquire);
        if let Err(error) = rustix::fs::fdatasync(&syncer.wal) {
            // After a failed sync the kernel may have dropped the pages: nothing later can be
            // trusted to be on disk.
            let error = std::io::Error::from(error);
            syncer.failed = Some(error.to_string());
            lock(&self.writer).failed = Some(error.to_string());
            return Err(LedgerError::file("sync", wal_of(&self.path))(error));
        }
        self.synced.store(size, Ordering::Release);
        Ok(())
    }

    /// Keeps what a power cut could lose within 100 entries or 500 ms.
    fn limit_unsynced(&self, seq: u64, ts_ms: u64) -> Result<(), LedgerError> {
        let oldest = self.oldest_unsynced_ms.fetch_min(ts_ms, Ordering::AcqRel);
        let waiting = (seq + 1).saturating_sub(self.synced.load(Ordering::Acquire));
        if oldest == u64::MAX {
            self.bell.want_sync_soon();
        } else if ts_ms.saturating_sub(oldest) >= UNSYNCED_MS {
            return self.sync(seq);
        } else if waiting >= UNSYNCED_ENTRIES {
            self.bell.want_sync_now();
        }
        Ok(())
    }

    /// Makes everything durable that is committed.
    pub(crate) fn sync_all(&self) -> Result<(), LedgerError> {
        match self.committed.load(Ordering::Acquire).checked_sub(1) {
            Some(last) => self.sync(last),
            None => Ok(()),
        }
    }

    /// Signs the tree over what is durable and remembers the checkpoint outside the ledger.
    ///
    /// What is remembered is never ahead of what is on disk, so a power cut looks like nothing worse.
    pub(crate) fn remember(&self, durability: Durability) -> Result<String, LedgerError> {
        let _memory = lock(&self.memory);
        let edge = self.committed_edge()?;
        self.sync_all()?;
        let note = self.sign(&edge)?;
        files::replace(self.layout.remembered(), note.as_bytes(), durability)?;
        Ok(note)
    }

    fn sign(&self, edge: &Frontier) -> Result<String, LedgerError> {
        let origin = self.checkpoint_origin.clone();
        let checkpoint = Checkpoint { origin, size: edge.size(), root: edge.root() };
        let keys = lock(&self.keys);
        let note = checkpoint.sign(&keys.current)?;
        match &keys.next {
            None => Ok(note),
            Some(next) => Ok(cosign_note(&note, next).map_err(CheckpointError::from)?),
        }
    }

    /// The right edge of the tree, with everything below it in the database.
    fn committed_edge(&self) -> Result<Frontier, LedgerError> {
        let edge = lock(&self.chain).frontier().clone();
        if let Some(last) = edge.size().checked_sub(1) {
            self.commit(last)?;
        }
        Ok(edge)
    }

    /// Moves the write-ahead log into the database. Most of it moves beside the appenders; they wait
    /// for the rest, so that the log is whole in the database for once, and the next append starts it
    /// from its beginning instead of letting the file grow.
    pub(crate) fn checkpoint_wal(&self, own: &Connection) -> Result<(), LedgerError> {
        let run = || {
            own.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .map_err(LedgerError::database("moving the log into the database"))
        };
        run()?;
        let _writer = lock(&self.writer);
        run()
    }

    /// Opens a connection of the housekeeper's own. It waits for nobody: while someone reads an old
    /// state, the log stays as it is.
    pub(crate) fn connect(&self) -> Result<Connection, LedgerError> {
        let connection = store::open_writer(&self.path)?;
        connection
            .busy_timeout(Duration::ZERO)
            .map_err(LedgerError::database("setting up the database"))?;
        Ok(connection)
    }

    /// The name under which the segment's checkpoints are signed.
    pub(crate) fn checkpoint_origin(&self) -> &str {
        &self.checkpoint_origin
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    fn empty_wal(&self) -> Result<(), LedgerError> {
        lock(&self.writer)
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(LedgerError::database("moving the log into the database"))
    }
}

/// The write-ahead log of a database.
pub(crate) fn wal_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// A file of SQLite's that belongs to a database.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A panic while the lock was held leaves values that are still whole: every update is one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
