//! The open ledger: many appenders, one chain, one writer.
//!
//! Appending is three steps, each under its own lock, so that threads overlap:
//!
//! 1. *chain*: the record gets its number and its hash, in memory;
//! 2. *writer*: whoever holds the lock writes everything that is waiting, in one transaction. After
//!    this the entry survives the death of the process;
//! 3. *syncer*: for what must be durable, whoever holds the lock syncs the write-ahead log once for
//!    all that was committed. After this the entry survives a power cut.
//!
//! **Invariant.** A number is given once. After a failed write nothing more is accepted, because the
//! chain in memory is then ahead of the chain on disk.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use fluffy_base::{Clock, Digest};
use rusqlite::Connection;

use crate::chain::Chain;
use crate::checkpoint::Checkpoint;
use crate::files::{self, Durability, Lock};
use crate::housekeeper::{self, Bell};
use crate::merkle::Frontier;
use crate::recovery::{self, Opened};
use crate::{Appended, Break, Layout, LedgerError, Origin, Record, SigningKey, store};

/// A power cut may lose this many operational entries …
const UNSYNCED_ENTRIES: u64 = 100;
/// … or those of this many milliseconds.
const UNSYNCED_MS: u64 = 500;
/// Beyond this size the write-ahead log is emptied even while appenders wait.
const WAL_LIMIT_BYTES: u64 = 64 << 20;

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
    path: PathBuf,
    checkpoint_origin: String,
    key: Mutex<SigningKey>,
    chain: Mutex<Chain>,
    writer: Mutex<Writer>,
    syncer: Mutex<Syncer>,
    /// Entries that are in the database.
    committed: AtomicU64,
    /// Entries that survive a power cut.
    synced: AtomicU64,
    /// Time of the oldest entry that is not synced.
    oldest_unsynced_ms: AtomicU64,
    pub(crate) bell: Bell,
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
        let origin = Origin { kernel_id: opened.kernel_id.clone(), ..config.origin };
        let report = OpenReport {
            segment: opened.segment,
            entries: opened.frontier.size(),
            broken: opened.broken.clone(),
        };
        files::remove(&config.layout.clean_mark())?;
        let shared = Arc::new(Shared::new(config.layout, config.key, opened)?);
        let housekeeper = Some(housekeeper::start(Arc::clone(&shared))?);
        Ok(Self { shared, housekeeper, origin, report, _lock: lock })
    }

    /// Appends a record. When this returns, the entry survives the death of the process; if it is a
    /// security event, a refusal or the decision before an effect, it survives a power cut.
    pub fn append(&self, record: Record) -> Result<Appended, LedgerError> {
        let durable = record.must_be_durable();
        let ts_ms = record.ts_ms;
        let appended = lock(&self.shared.chain).push(record);
        self.shared.commit(appended.seq)?;
        if durable {
            self.shared.sync(appended.seq)?;
            self.shared.bell.want_checkpoint();
        } else {
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

    /// The database of the segment that is written to.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Makes everything durable, signs the tree and remembers the checkpoint; gives its text.
    pub fn checkpoint(&self) -> Result<String, LedgerError> {
        self.shared.remember(Durability::Synced)
    }

    /// Replaces the signing key. The rotation is an entry that both keys signed.
    pub fn rotate_key(&self, new: SigningKey, record: Record) -> Result<Appended, LedgerError> {
        let appended = self.append(record)?;
        *lock(&self.shared.key) = new;
        self.shared.remember(Durability::Synced)?;
        Ok(appended)
    }

    /// Writes, signs and closes; keeps a snapshot. Dropping does the same without telling of errors.
    pub fn close(mut self) -> Result<(), LedgerError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), LedgerError> {
        let Some(thread) = self.housekeeper.take() else { return Ok(()) };
        self.shared.bell.stop();
        if thread.join().is_err() {
            return Err(LedgerError::Stopped("the housekeeper panicked".to_owned()));
        }
        self.shared.remember(Durability::Synced)?;
        self.shared.empty_wal()?;
        let size = self.size();
        recovery::snapshot(&self.shared.layout, self.shared.segment, size)?;
        let mark = format!("{size}\n");
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
            key: Mutex::new(key),
            chain: Mutex::new(Chain::new(opened.head, opened.frontier)),
            writer: Mutex::new(Writer { connection: opened.connection, failed: None }),
            syncer: Mutex::new(Syncer { wal, failed: None }),
            committed: AtomicU64::new(size),
            synced: AtomicU64::new(size),
            oldest_unsynced_ms: AtomicU64::new(u64::MAX),
            bell: Bell::default(),
        })
    }

    /// Writes everything that waits, unless another thread has done it by the time the lock is ours.
    fn commit(&self, seq: u64) -> Result<(), LedgerError> {
        let mut writer = lock(&self.writer);
        if self.committed.load(Ordering::Acquire) > seq {
            return Ok(());
        }
        if let Some(reason) = &writer.failed {
            return Err(LedgerError::Stopped(reason.clone()));
        }
        let rows = lock(&self.chain).take_pending();
        let Some(last) = rows.last() else { return Ok(()) };
        let size = last.seq + 1;
        if let Err(error) = store::insert(&mut writer.connection, &rows) {
            writer.failed = Some(error.to_string());
            return Err(LedgerError::database("appending")(error));
        }
        self.committed.store(size, Ordering::Release);
        self.bell.count_writes(rows.len() as u64);
        Ok(())
    }

    /// Makes entry `seq` and all before it durable.
    pub(crate) fn sync(&self, seq: u64) -> Result<(), LedgerError> {
        let mut syncer = lock(&self.syncer);
        if self.synced.load(Ordering::Acquire) > seq {
            return Ok(());
        }
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
        let edge = self.committed_edge()?;
        self.sync_all()?;
        let note = self.sign(&edge)?;
        files::replace(self.layout.remembered(), note.as_bytes(), durability)?;
        Ok(note)
    }

    fn sign(&self, edge: &Frontier) -> Result<String, LedgerError> {
        let origin = self.checkpoint_origin.clone();
        let checkpoint = Checkpoint { origin, size: edge.size(), root: edge.root() };
        Ok(checkpoint.sign(&lock(&self.key))?)
    }

    /// The right edge of the tree, with everything below it in the database.
    fn committed_edge(&self) -> Result<Frontier, LedgerError> {
        let edge = lock(&self.chain).frontier().clone();
        if let Some(last) = edge.size().checked_sub(1) {
            self.commit(last)?;
        }
        Ok(edge)
    }

    /// Moves the write-ahead log into the database without disturbing appenders, unless the log has
    /// grown so large that they have to wait for once.
    pub(crate) fn checkpoint_wal(&self, own: &Connection) -> Result<(), LedgerError> {
        let run = |connection: &Connection, mode: &str| {
            let sql = format!("PRAGMA wal_checkpoint({mode})");
            connection
                .query_row(&sql, [], |_| Ok(()))
                .map_err(LedgerError::database("moving the log into the database"))
        };
        run(own, "PASSIVE")?;
        let wal = wal_of(&self.path);
        let length = std::fs::metadata(&wal).map_err(LedgerError::file("look at", &wal))?.len();
        if length > WAL_LIMIT_BYTES {
            run(&lock(&self.writer).connection, "TRUNCATE")?;
        }
        Ok(())
    }

    /// Opens a connection of the housekeeper's own.
    pub(crate) fn connect(&self) -> Result<Connection, LedgerError> {
        store::open_writer(&self.path)
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
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}

/// A panic while the lock was held leaves values that are still whole: every update is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
