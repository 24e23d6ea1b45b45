//! Reading the ledger: filters over entries and their details, newest or oldest first.
//!
//! There is no index beside the chain that a query could trust more than the entries themselves: a
//! query reads entries in order, those in archives like those in the database, and stops when it has
//! enough.

use std::ops::Range;
use std::path::Path;

use fluffy_base::{Decision, Digest};
use rusqlite::{Connection, OptionalExtension as _};

use crate::archive::{ArchiveFile, Header, Line};
use crate::codes::decision_code;
use crate::held::{Held, Part};
use crate::store::{self, ENTRY_COLUMNS, RowError, StoredEntry, key};
use crate::{AuditEntry, Blob, Category, DetailView, EventType, LedgerError, trim};

/// Which entries are wanted. Every filter that is set must match.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Of this kind.
    pub event: Option<EventType>,
    /// Of this group.
    pub category: Option<Category>,
    /// By this actor.
    pub actor: Option<String>,
    /// Decided like this.
    pub decision: Option<Decision>,
    /// Of this session.
    pub session: Option<String>,
    /// For this tool.
    pub tool: Option<String>,
    /// Not earlier than this time, in milliseconds.
    pub since_ms: Option<u64>,
    /// Not later than this time, in milliseconds.
    pub until_ms: Option<u64>,
    /// Not before this number.
    pub from_seq: u64,
}

/// How much of what matches is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: u64,
    /// After leaving out so many.
    pub offset: u64,
    /// The newest first.
    pub newest_first: bool,
}

/// An entry with its detail as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// The link of the chain.
    pub entry: AuditEntry,
    /// The bytes of its detail.
    pub detail: Vec<u8>,
}

impl Query {
    /// Calls `found` for every matching entry of the page until it says stop.
    pub fn run(
        &self,
        path: &Path,
        page: Page,
        mut found: impl FnMut(StoredRecord) -> bool,
    ) -> Result<(), LedgerError> {
        let held = Held::open(path)?;
        let mut parts = held.parts(u64::MAX);
        if page.newest_first {
            parts.reverse();
        }
        let mut taker =
            Taker { query: self, skip: page.offset, left: page.limit, found: &mut found };
        for part in parts {
            let goes_on = match part {
                Part::Rows(range) => taker.rows(&held.connection, range, page.newest_first)?,
                Part::Archived(file) => taker.archive(&held, &file, page.newest_first)?,
                Part::Gone(_) => true,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// All matching entries of the page.
    pub fn collect(&self, path: &Path, page: Page) -> Result<Vec<StoredRecord>, LedgerError> {
        let mut records = Vec::new();
        self.run(path, page, |record| {
            records.push(record);
            true
        })?;
        Ok(records)
    }

    /// Whether the columns of an entry match: what the database is asked for its rows.
    fn matches_columns(&self, stored: &StoredEntry<'_>) -> bool {
        let columns = &stored.columns;
        stored.seq >= self.from_seq
            && self.actor.as_deref().is_none_or(|actor| columns.actor == actor)
            && self.decision.is_none_or(|decision| columns.decision == decision.name())
            && self.since_ms.is_none_or(|since| columns.ts_ms >= since)
            && self.until_ms.is_none_or(|until| columns.ts_ms <= until)
            && self.tool.as_deref().is_none_or(|tool| columns.tool_name == Some(tool))
    }

    fn matches_detail(&self, stored: &StoredEntry<'_>) -> bool {
        if self.event.is_none() && self.category.is_none() && self.session.is_none() {
            return true;
        }
        // A detail that cannot be read is shown: hiding it would hide the damage.
        let Ok(detail) = DetailView::parse(stored.detail) else { return true };
        let event = EventType::from_name(&detail.event);
        self.event.is_none_or(|wanted| event == Some(wanted))
            && self.category.is_none_or(|c| event.map(EventType::category) == Some(c))
            && self.session.as_deref().is_none_or(|wanted| detail.session_id == wanted)
    }
}

/// Takes what is wanted off one part after the other.
struct Taker<'a> {
    query: &'a Query,
    skip: u64,
    left: u64,
    found: &'a mut dyn FnMut(StoredRecord) -> bool,
}

impl Taker<'_> {
    /// Takes rows of the database; `false` once there is enough.
    fn rows(
        &mut self,
        connection: &Connection,
        range: Range<u64>,
        newest_first: bool,
    ) -> Result<bool, LedgerError> {
        let order = if newest_first { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT {ENTRY_COLUMNS} FROM entries WHERE seq >= ?1 AND (?2 IS NULL OR actor = ?2) \
             AND (?3 IS NULL OR decision = ?3) AND (?4 IS NULL OR ts_ms >= ?4) \
             AND (?5 IS NULL OR ts_ms <= ?5) AND (?6 IS NULL OR tool_name = ?6) AND seq < ?7 \
             ORDER BY seq {order}"
        );
        let (query, reading) = (self.query, LedgerError::database);
        let mut statement = connection.prepare(&sql).map_err(reading("querying"))?;
        let mut rows = statement
            .query(rusqlite::params![
                key(query.from_seq.max(range.start)),
                query.actor,
                query.decision.map(decision_code),
                query.since_ms.map(key),
                query.until_ms.map(key),
                query.tool,
                key(range.end),
            ])
            .map_err(reading("querying"))?;
        while self.left > 0
            && let Some(row) = rows.next().map_err(reading("querying"))?
        {
            let stored = StoredEntry::from_row(row)?;
            if !self.take(&stored, || store::hash_before(connection, stored.seq))? {
                return Ok(false);
            }
        }
        Ok(self.left > 0)
    }

    /// Takes lines of an archive; `false` once there is enough.
    fn archive(
        &mut self,
        held: &Held,
        file: &ArchiveFile,
        newest_first: bool,
    ) -> Result<bool, LedgerError> {
        let (query, header) = (self.query, Header::read(file)?);
        let outside = query.from_seq > header.last
            || query.since_ms.is_some_and(|since| header.last_ms < since)
            || query.until_ms.is_some_and(|until| until < header.first_ms);
        if outside {
            return Ok(true);
        }
        let mut take = |line: &Line| {
            let stored = line.stored();
            if !query.matches_columns(&stored) {
                return Ok(true);
            }
            Ok(self.take(&stored, || Ok(line.prev_hash))? && self.left > 0)
        };
        if newest_first {
            held.lines_backwards(file, &mut take)
        } else {
            held.lines(file, &mut take)
        }
    }

    /// Hands an entry on unless it is left out; `false` where no more are wanted.
    fn take(
        &mut self,
        stored: &StoredEntry<'_>,
        prev_hash: impl FnOnce() -> Result<Digest, RowError>,
    ) -> Result<bool, LedgerError> {
        if !self.query.matches_detail(stored) {
            return Ok(true);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        self.left = self.left.saturating_sub(1);
        let entry = owned(stored, prev_hash()?)?;
        Ok((self.found)(StoredRecord { entry, detail: stored.detail.to_vec() }))
    }
}

/// The private input of an entry, if it has one.
pub fn input_of(path: &Path, seq: u64) -> Result<Option<Blob>, LedgerError> {
    let connection = store::open_reader(path)?;
    let kept =
        store::read_blob(&connection, seq).map_err(LedgerError::database("reading an input"))?;
    if kept.is_some() || trim::first_row(&connection).is_ok_and(|first| first <= Some(1)) {
        return Ok(kept);
    }
    Ok(Held::open(path)?.archived(seq)?.and_then(Line::into_input))
}

/// The entry with the fields of a stored one.
pub(crate) fn owned(
    stored: &StoredEntry<'_>,
    prev_hash: Digest,
) -> Result<AuditEntry, LedgerError> {
    use fluffy_base::KernelState;
    let view = stored.view();
    let unknown =
        |what: &str| LedgerError::Damaged(format!("entry {}: unknown {what}", stored.seq));
    let state = |name: &str| KernelState::from_name(name).ok_or_else(|| unknown("state"));
    Ok(AuditEntry {
        seq: stored.seq,
        prev_hash,
        entry_hash: stored.entry_hash,
        ts_ms: view.ts_ms,
        request_id: view.request_id.to_owned(),
        actor: view.actor.to_owned(),
        intent: view.intent.to_owned(),
        decision: Decision::from_name(view.decision).ok_or_else(|| unknown("decision"))?,
        state_from: state(view.state_from)?,
        state_to: state(view.state_to)?,
        tool_name: view.tool_name.map(str::to_owned),
        params_hash: view.params_hash,
        evidence_hash: view.evidence_hash,
        error: view.error.map(str::to_owned),
    })
}

/// Number of the entry with this hash.
pub fn find_entry(path: &Path, hash: &Digest) -> Result<Option<u64>, LedgerError> {
    let connection = store::open_reader(path)?;
    let row = connection
        .query_row("SELECT seq FROM entries WHERE entry_hash = ?1", [hash.as_bytes()], |row| {
            row.get::<_, i64>(0)
        })
        .optional()
        .map(|seq| seq.and_then(|seq| u64::try_from(seq).ok()))
        .map_err(LedgerError::database("looking for an entry"))?;
    if row.is_some() { Ok(row) } else { Held::open(path)?.find(hash) }
}
