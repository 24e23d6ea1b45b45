//! What happens to entries as they grow old: archived after their day, out of the database after the
//! time they are kept, deleted after the time of retention or when there is no room.
//!
//! It runs when the ledger is opened for writing, and a failure never keeps the ledger from opening.
//! Every step is an entry before it cannot be taken back, and an interrupted one is finished by the
//! next opening:
//!
//! 1. an archive is written under another name, recorded with its digest, and only then gets its own:
//!    what has the name is recorded;
//! 2. rows leave only if their archive has the recorded digest, after an entry says so, in one
//!    transaction. The mark `trimming` is there until the file is compact again;
//! 3. an archive is deleted after an entry says so, the oldest first, never the newest. An entry names
//!    the last number that was deleted, and so covers all before it, whose own records may be gone.

use std::collections::BTreeMap;

use fluffy_base::{Digest, KernelState};
use rusqlite::Connection;

use crate::archive::{self, ArchiveFile, ArchiveName, Header, Writer};
use crate::files::{self, Durability};
use crate::ledger::Shared;
use crate::merkle::TILE_WIDTH;
use crate::store::{self, ENTRY_COLUMNS, StoredEntry, key};
use crate::trim::{self, PREV_HASH, TO, Trim};
use crate::verify::input_problem;
use crate::{Detail, EventType, Ledger, LedgerError, Record, Storage, StorageLevel, query};

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// A mark is a word.
const MARK_LIMIT: u64 = 64;

/// Where an entry names an archive.
pub(crate) const FILE: &str = "file";
/// Where it names the digest of its bytes.
pub(crate) const BYTES_HASH: &str = "sha256";
/// Where it names the last entry.
pub(crate) const LAST: &str = "last";

/// How long entries are kept, and how much room they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionOptions {
    /// Archives whose newest entry is older than this many days are deleted.
    pub retention_days: u64,
    /// The oldest archives are deleted when all files together are larger than this.
    pub max_bytes: u64,
    /// Archived entries stay in the database for this many days; never longer than the retention.
    pub keep_days: u64,
}

impl Default for RetentionOptions {
    fn default() -> Self {
        Self { retention_days: 90, max_bytes: 1 << 30, keep_days: 60 }
    }
}

/// What was done about old entries when the ledger was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retained {
    /// Archives that were written, oldest first.
    pub archived: Vec<Archived>,
    /// How many entries left the database.
    pub trimmed: u64,
    /// Archives that were deleted, oldest first.
    pub deleted: Vec<Deleted>,
    /// How much room the ledger takes after that.
    pub storage: Storage,
    /// What could not be done; it is tried again at the next opening.
    pub problem: Option<String>,
}

/// An archive that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// What it holds.
    pub name: ArchiveName,
    /// How long it is.
    pub bytes: u64,
    /// The entry that records it.
    pub entry: u64,
}

/// An archive that was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// What it held.
    pub name: ArchiveName,
    /// Why: `age` or `size`.
    pub reason: &'static str,
}

/// The name of an archive that is not recorded yet.
pub(crate) fn unfinished(name: &ArchiveName) -> String {
    format!("{name}{UNFINISHED}")
}

/// Ending of such a name.
const UNFINISHED: &str = ".new";

/// Does what is due.
pub(crate) fn run(
    ledger: &Ledger,
    shared: &Shared,
    options: &RetentionOptions,
    now_ms: u64,
) -> Retained {
    let mut keeper = Keeper { ledger, shared, options, now_ms, done: Retained::default() };
    let steps = [
        Keeper::resume,
        Keeper::archive_days,
        Keeper::trim_old,
        Keeper::delete_old,
        Keeper::make_room,
        Keeper::record_level,
    ];
    for step in steps {
        if let Err(error) = step(&mut keeper) {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let text = format!("{error}{}", cause.unwrap_or_default());
            keeper.done.problem.get_or_insert(text);
        }
    }
    keeper.done
}

struct Keeper<'a> {
    ledger: &'a Ledger,
    shared: &'a Shared,
    options: &'a RetentionOptions,
    now_ms: u64,
    done: Retained,
}

/// Neighbouring entries of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Day {
    first: u64,
    last: u64,
    first_ms: u64,
    last_ms: u64,
}

impl Keeper<'_> {
    /// Finishes what was interrupted.
    fn resume(&mut self) -> Result<(), LedgerError> {
        let dir = self.shared.layout().archive();
        for text in files::names(&dir)? {
            let Some(final_name) = text.strip_suffix(UNFINISHED) else { continue };
            let Ok(name) = final_name.parse::<ArchiveName>() else { continue };
            if name.segment != self.ledger.report().segment {
                continue;
            }
            let (from, to) = (dir.join(&text), dir.join(final_name));
            if self.recorded_digest(&name)?.is_some() && !to.exists() {
                files::rename(&from, &to)?;
            } else {
                files::remove(&from)?;
            }
            files::sync_parent(&to)?;
        }
        if self.shared.layout().trimming().exists() { self.finish_trimming() } else { Ok(()) }
    }

    /// Archives the entries of completed days.
    fn archive_days(&mut self) -> Result<(), LedgerError> {
        let connection = self.reader()?;
        let Some(first_row) = first_row(&connection)? else { return Ok(()) };
        let archived = self.archives()?.last().map_or(0, |file| file.name.last);
        let days = completed_days(&connection, first_row.max(archived + 1), self.now_ms / DAY_MS)?;
        for day in days {
            self.archive_day(&connection, &day)?;
        }
        Ok(())
    }

    fn archive_day(&mut self, connection: &Connection, day: &Day) -> Result<(), LedgerError> {
        let segment = self.ledger.report().segment;
        let name = ArchiveName { segment, first: day.first, last: day.last };
        let prev_hash = store::hash_before(connection, day.first)?;
        let header = Header {
            archive: Header::version(),
            origin: self.shared.checkpoint_origin().to_owned(),
            first: day.first,
            last: day.last,
            first_ms: day.first_ms,
            last_ms: day.last_ms,
            prev_hash,
            tree_size: self.ledger.size(),
        };
        let dir = self.shared.layout().archive();
        let mut writer = Writer::create(dir.join(unfinished(&name)), &header)?;
        let last_hash = write_entries(connection, &mut writer, day, prev_hash)?;
        let (digest, bytes) = writer.finish()?;
        files::sync_parent(&dir.join(name.to_string()))?;
        let record = [
            (FILE, name.to_string()),
            (BYTES_HASH, digest.to_string()),
            ("bytes", bytes.to_string()),
            ("first", day.first.to_string()),
            (LAST, day.last.to_string()),
            ("last_hash", last_hash.to_string()),
        ];
        let intent = "entries of a completed day were archived";
        let entry = self.record(EventType::AuditArchived, intent, record)?;
        files::rename(&dir.join(unfinished(&name)), &dir.join(name.to_string()))?;
        files::sync_parent(&dir.join(name.to_string()))?;
        self.done.archived.push(Archived { name, bytes, entry });
        Ok(())
    }

    /// Takes entries out of the database that are archived and older than they are kept.
    fn trim_old(&mut self) -> Result<(), LedgerError> {
        let keep = self.options.keep_days.min(self.options.retention_days);
        let mut leaving = Vec::new();
        for file in self.in_database()? {
            if !self.is_older(&file, keep)? {
                break;
            }
            leaving.push(file);
        }
        while leaving.last().is_some_and(|file| !self.may_leave(file)) {
            leaving.pop();
        }
        self.trim(&leaving).map(drop)
    }

    /// Whether the entries of an archive, and those before it, may leave: their leaves are read from
    /// tiles from then on, and only complete ones are stored.
    fn may_leave(&self, file: &ArchiveFile) -> bool {
        ((file.name.last + 1) / TILE_WIDTH + 1) * TILE_WIDTH <= self.ledger.size()
    }

    /// Takes the entries of these archives, which follow each other, out of the database; `false`
    /// where they have to stay.
    fn trim(&mut self, leaving: &[ArchiveFile]) -> Result<bool, LedgerError> {
        let Some(last) = leaving.last().filter(|file| self.may_leave(file)) else {
            return Ok(false);
        };
        let to = last.name.last + 1;
        let connection = self.reader()?;
        let mut next = first_row(&connection)?.unwrap_or(to);
        for file in leaving {
            let digest = archive::digest_of(&file.path)?;
            if file.name.first != next || self.recorded_digest(&file.name)? != Some(digest) {
                let problem = "it is not the one that was recorded".to_owned();
                return Err(LedgerError::Archive { file: file.name.to_string(), line: 0, problem });
            }
            next = file.name.last + 1;
        }
        let prev = store::entry_hash(&connection, to - 1)?;
        drop(connection);
        files::replace(&self.shared.layout().trimming(), b"", Durability::Synced)?;
        let record = [(TO, to.to_string()), (PREV_HASH, prev.to_string())];
        let intent = "archived entries leave the database";
        let entry = self.record(EventType::AuditTrimmed, intent, record)?;
        let hint = self.shared.layout().dir().join(trim::HINT);
        files::replace(&hint, entry.to_string().as_bytes(), Durability::Written)?;
        self.finish_trimming()?;
        Ok(true)
    }

    /// Does what the last entry about leaving says, and makes the file compact.
    fn finish_trimming(&mut self) -> Result<(), LedgerError> {
        let trimming = LedgerError::database;
        let connection = store::open_writer(&self.shared.path)?;
        // Compacting copies the file: on disk, not in memory.
        connection.execute_batch("PRAGMA temp_store = FILE").map_err(trimming("trimming"))?;
        let first = first_row(&connection)?;
        let to = trim::newest(&connection, EventType::AuditTrimmed, Trim::parse)?.map(|t| t.to);
        if let (Some(first), Some(to)) = (first, to)
            && first < to
        {
            files::step();
            store::delete_before(&connection, to).map_err(trimming("trimming"))?;
            self.done.trimmed += to - first;
        }
        files::step();
        connection.execute_batch("VACUUM").map_err(trimming("compacting"))?;
        files::step();
        // While someone reads an old state, the log stays as it is.
        let moved = "PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)";
        connection.execute_batch(moved).map_err(trimming("compacting"))?;
        self.shared.sync_log()?;
        drop(connection);
        files::remove(&self.shared.layout().trimming())
    }

    /// Deletes archives that are older than the retention.
    fn delete_old(&mut self) -> Result<(), LedgerError> {
        for file in self.deletable()? {
            let in_database = self.in_database()?.contains(&file);
            if in_database || !self.is_older(&file, self.options.retention_days)? {
                break;
            }
            self.delete(&file, "age")?;
        }
        Ok(())
    }

    /// Deletes old snapshots and then the oldest archives while the ledger takes more room than it may.
    /// The time that entries are kept in the database gives way to the room.
    fn make_room(&mut self) -> Result<(), LedgerError> {
        let layout = self.shared.layout();
        let is_over = || Storage::of(layout, self.options).map(|storage| storage.is_over());
        if is_over()? {
            layout.prune_snapshots(1)?;
        }
        while is_over()? {
            let Some(oldest) = self.deletable()?.into_iter().next() else { return Ok(()) };
            let in_database = self.in_database()?.contains(&oldest);
            if in_database && !self.trim(std::slice::from_ref(&oldest))? {
                return Ok(());
            }
            self.delete(&oldest, "size")?;
        }
        Ok(())
    }

    fn delete(&mut self, file: &ArchiveFile, reason: &'static str) -> Result<(), LedgerError> {
        let connection = self.reader()?;
        // An entry that a death came between and its deletion is not written twice.
        let told = trim::newest(&connection, EventType::AuditArchiveDeleted, |record| {
            record.metadata.get(LAST)?.parse::<u64>().ok()
        })?;
        drop(connection);
        let name = file.name;
        if told.is_none_or(|told| told < name.last) {
            let record = [
                (FILE, name.to_string()),
                ("first", name.first.to_string()),
                (LAST, name.last.to_string()),
                ("reason", reason.to_owned()),
            ];
            self.record(EventType::AuditArchiveDeleted, "an archive is deleted", record)?;
        }
        files::remove(&file.path)?;
        files::sync_parent(&file.path)?;
        self.done.deleted.push(Deleted { name, reason });
        Ok(())
    }

    /// Records that the storage fills up, once each time it does.
    fn record_level(&mut self) -> Result<(), LedgerError> {
        let layout = self.shared.layout();
        let storage = Storage::of(layout, self.options)?;
        self.done.storage = storage;
        let mark = files::read_small(&layout.storage_mark(), MARK_LIMIT)?;
        let before = mark.and_then(|mark| StorageLevel::from_name(mark.trim())).unwrap_or_default();
        let level = storage.level();
        let event = match level {
            _ if level <= before => None,
            StorageLevel::Fine => None,
            StorageLevel::Warning => {
                Some((EventType::AuditStorageWarning, "the ledger's storage fills up"))
            }
            StorageLevel::Critical => {
                Some((EventType::AuditStorageCritical, "the ledger's storage is nearly full"))
            }
        };
        if let Some((event, intent)) = event {
            let record = [
                ("bytes", storage.bytes.to_string()),
                ("max_bytes", storage.max_bytes.to_string()),
                ("percent", storage.percent().to_string()),
            ];
            self.record(event, intent, record)?;
        }
        if level == before {
            return Ok(());
        }
        files::replace(&layout.storage_mark(), level.name().as_bytes(), Durability::Written)
    }

    /// Enters something about the ledger itself; it is durable when this returns.
    fn record<const N: usize>(
        &self,
        event: EventType,
        intent: &str,
        metadata: [(&'static str, String); N],
    ) -> Result<u64, LedgerError> {
        files::step();
        let mut detail = Detail::new(self.ledger.origin().clone(), event);
        detail.metadata = BTreeMap::from(metadata);
        let states = (KernelState::Booting, KernelState::Booting);
        let appended = self.ledger.append(Record::event(self.now_ms, intent, states, detail))?;
        files::step();
        Ok(appended.seq)
    }

    fn reader(&self) -> Result<Connection, LedgerError> {
        store::open_reader(&self.shared.path)
    }

    fn archives(&self) -> Result<Vec<ArchiveFile>, LedgerError> {
        archive::list(&self.shared.layout().archive(), self.ledger.report().segment)
    }

    /// The archives whose entries are still in the database, too.
    fn in_database(&self) -> Result<Vec<ArchiveFile>, LedgerError> {
        let first = first_row(&self.reader()?)?.unwrap_or(u64::MAX);
        let mut files = self.archives()?;
        files.retain(|file| file.name.last >= first);
        Ok(files)
    }

    /// All archives but the newest.
    fn deletable(&self) -> Result<Vec<ArchiveFile>, LedgerError> {
        let mut files = self.archives()?;
        files.pop();
        Ok(files)
    }

    /// Whether the newest entry of an archive is older than this.
    fn is_older(&self, file: &ArchiveFile, days: u64) -> Result<bool, LedgerError> {
        let newest = Header::read(file)?.last_ms;
        Ok(self.now_ms.saturating_sub(newest) > days.saturating_mul(DAY_MS))
    }

    fn recorded_digest(&self, name: &ArchiveName) -> Result<Option<Digest>, LedgerError> {
        let text = name.to_string();
        Ok(trim::newest(&self.reader()?, EventType::AuditArchived, |record| {
            let is_it = record.metadata.get(FILE) == Some(&text);
            is_it.then(|| record.metadata.get(BYTES_HASH)?.parse().ok())?
        })?)
    }
}

fn first_row(connection: &Connection) -> Result<Option<u64>, LedgerError> {
    trim::first_row(connection).map_err(LedgerError::database("reading"))
}

/// The days before `today` from entry `first` on. Clocks may go back: an entry belongs to the day of
/// the latest before it, and what follows an entry of today waits with it.
fn completed_days(
    connection: &Connection,
    first: u64,
    today: u64,
) -> Result<Vec<Day>, LedgerError> {
    let reading = LedgerError::database;
    let mut days: Vec<Day> = Vec::new();
    let mut statement = connection
        .prepare("SELECT seq, ts_ms FROM entries WHERE seq >= ?1 ORDER BY seq")
        .map_err(reading("reading"))?;
    let mut rows = statement.query([key(first)]).map_err(reading("reading"))?;
    let mut newest = 0;
    while let Some(row) = rows.next().map_err(reading("reading"))? {
        let pair = row.get::<_, i64>(0).and_then(|seq| Ok((seq, row.get::<_, i64>(1)?)));
        let (seq, ts_ms) = pair.map_err(reading("reading"))?;
        let (seq, ts_ms) = (seq.unsigned_abs(), ts_ms.unsigned_abs());
        if ts_ms / DAY_MS >= today {
            break;
        }
        match days.last_mut() {
            Some(day) if ts_ms / DAY_MS <= newest => {
                day.last = seq;
                day.first_ms = day.first_ms.min(ts_ms);
                day.last_ms = day.last_ms.max(ts_ms);
            }
            _ => days.push(Day { first: seq, last: seq, first_ms: ts_ms, last_ms: ts_ms }),
        }
        newest = newest.max(ts_ms / DAY_MS);
    }
    Ok(days)
}

/// Writes the entries of a day and gives the hash of the last. What does not verify is not archived:
/// it is left as it is for a verification to find.
fn write_entries(
    connection: &Connection,
    writer: &mut Writer,
    day: &Day,
    mut prev: Digest,
) -> Result<Digest, LedgerError> {
    let reading = LedgerError::database;
    let sql = format!(
        "SELECT {ENTRY_COLUMNS}, input FROM entries WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq"
    );
    let mut statement = connection.prepare(&sql).map_err(reading("archiving"))?;
    let mut rows =
        statement.query([key(day.first), key(day.last)]).map_err(reading("archiving"))?;
    let (mut next, mut scratch) = (day.first, Vec::new());
    while let Some(row) = rows.next().map_err(reading("archiving"))? {
        let stored = StoredEntry::from_row(row)?;
        let input = store::input_column(row)?;
        let intact = stored.seq == next
            && stored.view().hash(&prev, &mut scratch) == stored.entry_hash
            && input_problem(stored.detail, input).is_none();
        if !intact {
            return Err(LedgerError::Damaged(format!("entry {next} cannot be archived")));
        }
        writer.entry(&query::owned(&stored, prev)?, stored.detail, input)?;
        prev = stored.entry_hash;
        next += 1;
    }
    if next == day.last + 1 {
        Ok(prev)
    } else {
        Err(LedgerError::Damaged(format!("entry {next} cannot be archived")))
    }
}

#[cfg(test)]
mod tests;
