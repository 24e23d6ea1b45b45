//! Reading the ledger: filters over entries and their details, newest or oldest first.
//!
//! There is no index beside the chain that a query could trust more than the entries themselves: a
//! query reads entries in order and stops when it has enough.

use std::path::Path;

use fluffy_base::{Decision, Digest};
use rusqlite::{Connection, OptionalExtension as _};

use crate::codes::decision_code;
use crate::store::{self, ENTRY_COLUMNS, StoredEntry, key};
use crate::{AuditEntry, Blob, Category, DetailView, EventType, LedgerError};

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
        let connection = store::open_reader(path)?;
        let order = if page.newest_first { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT {ENTRY_COLUMNS} FROM entries WHERE seq >= ?1 AND (?2 IS NULL OR actor = ?2) \
             AND (?3 IS NULL OR decision = ?3) AND (?4 IS NULL OR ts_ms >= ?4) \
             AND (?5 IS NULL OR ts_ms <= ?5) AND (?6 IS NULL OR tool_name = ?6) ORDER BY seq {order}"
        );
        let reading = LedgerError::database;
        let mut statement = connection.prepare(&sql).map_err(reading("querying"))?;
        let mut rows = statement
            .query(rusqlite::params![
                key(self.from_seq),
                self.actor,
                self.decision.map(decision_code),
                self.since_ms.map(key),
                self.until_ms.map(key),
                self.tool,
            ])
            .map_err(reading("querying"))?;
        let (mut skip, mut left) = (page.offset, page.limit);
        while left > 0
            && let Some(row) = rows.next().map_err(reading("querying"))?
        {
            let stored = StoredEntry::from_row(row)?;
            if !self.matches_detail(&stored) {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            left -= 1;
            if !found(record(&connection, &stored)?) {
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

/// The private input of an entry, if it has one.
pub fn input_of(path: &Path, seq: u64) -> Result<Option<Blob>, LedgerError> {
    let connection = store::open_reader(path)?;
    store::read_blob(&connection, seq).map_err(LedgerError::database("reading an input"))
}

/// An owned copy of a stored entry.
pub(crate) fn record(
    connection: &Connection,
    stored: &StoredEntry<'_>,
) -> Result<StoredRecord, LedgerError> {
    let prev_hash = store::hash_before(connection, stored.seq)?;
    let entry = owned(stored, prev_hash)?;
    Ok(StoredRecord { entry, detail: stored.detail.to_vec() })
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
    connection
        .query_row("SELECT seq FROM entries WHERE entry_hash = ?1", [hash.as_bytes()], |row| {
            row.get::<_, i64>(0)
        })
        .optional()
        .map(|seq| seq.and_then(|seq| u64::try_from(seq).ok()))
        .map_err(LedgerError::database("looking for an entry"))
}
