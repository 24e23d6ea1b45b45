//! The database of one segment: its schema, its rows, and how it is opened.
//!
//! **Invariant.** The columns of `entries` are the entry; there is no second copy that a query could
//! read and a verification miss. What follows from them is not kept: the hash of a detail is computed
//! from the detail. Rows are inserted, and leave only in [`delete_before`], once they are archived.

use std::path::Path;

use fluffy_base::{Decision, Digest, KernelState};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, Statement, params};

use crate::codes::{decision_code, decision_of, state_code, state_of};
use crate::merkle::{Tile, TileId};
use crate::trim::Trim;
use crate::{EntryView, LedgerError};

/// Marks the file as a ledger of ours ("fluf").
pub(crate) const APPLICATION_ID: i64 = 0x666c_7566;
/// Version of the schema.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// What SQLite says of every file that we write. Nothing else writes ledgers, so anything else is
/// someone's hand.
const SETTINGS: [(&str, &str); 5] = [
    ("page_size", "4096"),
    ("encoding", "UTF-8"),
    ("auto_vacuum", "0"),
    ("freelist_count", "0"),
    ("default_cache_size", "-2000"),
];

/// Every object of the schema. A database with anything more, less or else is not a ledger: a
/// trigger slipped in could rewrite what is inserted.
const SCHEMA: [(&str, &str); 2] = [
    (
        "entries",
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, entry_hash BLOB NOT NULL, \
         ts_ms INTEGER NOT NULL, request_id TEXT NOT NULL, actor TEXT NOT NULL, \
         intent TEXT NOT NULL, decision INTEGER NOT NULL, state_from INTEGER NOT NULL, \
         state_to INTEGER NOT NULL, tool_name TEXT, params_hash BLOB, error TEXT, \
         detail BLOB NOT NULL, input BLOB) STRICT",
    ),
    ("tiles", "CREATE TABLE tiles (id INTEGER PRIMARY KEY, hashes BLOB NOT NULL) STRICT"),
];

/// The columns of an entry, in the order [`StoredEntry::from_row`] reads them.
pub(crate) const ENTRY_COLUMNS: &str = "seq, entry_hash, ts_ms, request_id, actor, intent, \
     decision, state_from, state_to, tool_name, params_hash, error, detail";

/// Writes one row, columns in the order of the schema.
pub(crate) const INSERT_ENTRY: &str =
    "INSERT INTO entries VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)";

/// One row on its way into the database.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) seq: u64,
    pub(crate) entry_hash: Digest,
    pub(crate) entry: OwnedEntry,
    pub(crate) detail: Vec<u8>,
    pub(crate) blob: Option<Blob>,
    pub(crate) tiles: Vec<Tile>,
}

/// The hashed fields of an entry, owned.
#[derive(Debug, Clone)]
pub(crate) struct OwnedEntry {
    pub(crate) request_id: String,
    pub(crate) actor: String,
    pub(crate) intent: String,
    pub(crate) decision: Decision,
    pub(crate) state_from: KernelState,
    pub(crate) state_to: KernelState,
    pub(crate) ts_ms: u64,
    pub(crate) tool_name: Option<String>,
    pub(crate) params_hash: Option<Digest>,
    pub(crate) evidence_hash: Digest,
    pub(crate) error: Option<String>,
}

impl OwnedEntry {
    pub(crate) fn view(&self) -> EntryView<'_> {
        EntryView {
            request_id: &self.request_id,
            actor: &self.actor,
            intent: &self.intent,
            decision: self.decision.name(),
            state_from: self.state_from.name(),
            state_to: self.state_to.name(),
            ts_ms: self.ts_ms,
            tool_name: self.tool_name.as_deref(),
            params_hash: self.params_hash,
            evidence_hash: Some(self.evidence_hash),
            error: self.error.as_deref(),
        }
    }
}

/// A private input, kept beside the entry that names its salted hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Salt and input in one, as they are hashed and stored.
    salted: Vec<u8>,
}

impl Blob {
    /// Length of a salt.
    pub const SALT_BYTES: usize = 16;

    /// An input with sixteen random bytes, so that the hash tells nothing about a guessable one.
    pub fn new(salt: [u8; Self::SALT_BYTES], input: &[u8]) -> Self {
        Self { salted: [&salt, input].concat() }
    }

    /// The input without its salt.
    pub fn input(&self) -> &[u8] {
        self.salted.get(Self::SALT_BYTES..).unwrap_or_default()
    }

    /// `sha256(salt + input)`: the name under which a detail refers to the blob.
    pub fn hash(&self) -> Digest {
        Digest::of(&self.salted)
    }

    /// Salt and input, as they are stored.
    pub(crate) fn into_salted(self) -> Vec<u8> {
        self.salted
    }

    /// What was stored, read back.
    pub(crate) fn from_salted(salted: Vec<u8>) -> Self {
        Self { salted }
    }

    /// How many bytes are stored.
    pub(crate) fn len(&self) -> usize {
        self.salted.len()
    }
}

/// Where a row stands in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) entry_hash: Digest,
}

/// One row read back, borrowed from the database's own memory.
#[derive(Debug)]
pub(crate) struct StoredEntry<'a> {
    pub(crate) seq: u64,
    pub(crate) entry_hash: Digest,
    /// The columns, without the hash of the detail: see [`StoredEntry::view`].
    pub(crate) columns: EntryView<'a>,
    pub(crate) detail: &'a [u8],
}

/// Place of the input where it is read after [`ENTRY_COLUMNS`].
pub(crate) const INPUT_COLUMN: usize = 13;

/// The input in the column after [`ENTRY_COLUMNS`].
pub(crate) fn input_column<'a>(row: &'a Row<'_>) -> Result<Option<&'a [u8]>, RowError> {
    match row.get_ref(INPUT_COLUMN)? {
        ValueRef::Null => Ok(None),
        value => value.as_blob().map(Some).map_err(|_| RowError::Kind(INPUT_COLUMN)),
    }
}

impl Link {
    /// Reads the first of [`ENTRY_COLUMNS`].
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self, RowError> {
        Ok(Self { seq: number(row, 0)?, entry_hash: digest(row, 1)? })
    }

    /// Reads the rest of [`ENTRY_COLUMNS`].
    pub(crate) fn rest_of<'a>(self, row: &'a Row<'_>) -> Result<StoredEntry<'a>, RowError> {
        let columns = EntryView {
            ts_ms: number(row, 2)?,
            request_id: text(row, 3)?,
            actor: text(row, 4)?,
            intent: text(row, 5)?,
            decision: named(row, 6, |code| decision_of(code).map(Decision::name))?,
            state_from: named(row, 7, |code| state_of(code).map(KernelState::name))?,
            state_to: named(row, 8, |code| state_of(code).map(KernelState::name))?,
            tool_name: optional_text(row, 9)?,
            params_hash: optional_digest(row, 10)?,
            evidence_hash: None,
            error: optional_text(row, 11)?,
        };
        let Self { seq, entry_hash } = self;
        Ok(StoredEntry { seq, entry_hash, columns, detail: blob(row, 12)? })
    }
}

impl<'a> StoredEntry<'a> {
    /// Reads a row of [`ENTRY_COLUMNS`].
    pub(crate) fn from_row(row: &'a Row<'_>) -> Result<Self, RowError> {
        Link::from_row(row)?.rest_of(row)
    }

    /// The hashed fields.
    pub(crate) fn view(&self) -> EntryView<'a> {
        EntryView { evidence_hash: Some(Digest::of(self.detail)), ..self.columns }
    }
}

/// A column that does not hold what the schema promises.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error("column {0} holds a value of the wrong kind")]
    Kind(usize),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, RowError> {
    row.get_ref(column)?.as_str().map_err(|_| RowError::Kind(column))
}

fn optional_text<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, RowError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|_| RowError::Kind(column)),
    }
}

pub(crate) fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], RowError> {
    row.get_ref(column)?.as_blob().map_err(|_| RowError::Kind(column))
}

fn named(
    row: &Row<'_>,
    column: usize,
    name: impl Fn(i64) -> Option<&'static str>,
) -> Result<&'static str, RowError> {
    let code = row.get_ref(column)?.as_i64().map_err(|_| RowError::Kind(column))?;
    name(code).ok_or(RowError::Kind(column))
}

pub(crate) fn number(row: &Row<'_>, column: usize) -> Result<u64, RowError> {
    let value = row.get_ref(column)?.as_i64().map_err(|_| RowError::Kind(column))?;
    u64::try_from(value).map_err(|_| RowError::Kind(column))
}

pub(crate) fn digest(row: &Row<'_>, column: usize) -> Result<Digest, RowError> {
    optional_digest(row, column)?.ok_or(RowError::Kind(column))
}

fn optional_digest(row: &Row<'_>, column: usize) -> Result<Option<Digest>, RowError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => match bytes.try_into() {
            Ok(bytes) => Ok(Some(Digest::from_bytes(bytes))),
            Err(_) => Err(RowError::Kind(column)),
        },
        _ => Err(RowError::Kind(column)),
    }
}

/// Opens a segment for writing, making it where it does not exist.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)
        .map_err(LedgerError::database("opening the database"))?;
    let setting_up = LedgerError::database;
    tune(&connection).map_err(setting_up("setting up the database"))?;
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(setting_up("setting up the database"))?;
    // A file that says it is of a newer format can be read, but not written.
    if mode != "wal" {
        return Err(LedgerError::Damaged(format!("the file does not take a log, only `{mode}`")));
    }
    Ok(connection)
}

/// What keeps an open segment from being written to. A file whose header forbids it is damaged; one
/// that the user may not write is an error.
pub(crate) fn writing_problem(
    connection: &Connection,
    path: &Path,
) -> Result<Option<String>, LedgerError> {
    // SQLite reads the header with the first statement.
    let read = size(connection).and_then(|_| connection.is_readonly(rusqlite::MAIN_DB));
    if !read.map_err(LedgerError::database("opening the database"))? {
        return Ok(None);
    }
    // Asked without opening the file: closing it again would drop SQLite's locks on it.
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
        .map_err(|error| LedgerError::file("write", path)(error.into()))?;
    Ok(Some("the file's header says that it may not be written".to_owned()))
}

/// Opens a segment for reading; a writer may be at work at the same time.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)
        .map_err(LedgerError::database("opening the database"))?;
    let setup = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; \
                 PRAGMA busy_timeout = 5000;";
    connection.execute_batch(setup).map_err(LedgerError::database("setting up the database"))?;
    Ok(connection)
}

/// WAL, and no checkpoint in the middle of an append: the housekeeper does that. `synchronous =
/// NORMAL` leaves the sync of a commit to us; SQLite still syncs around its own checkpoints.
fn tune(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
         PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF; \
         PRAGMA cell_size_check = ON; PRAGMA busy_timeout = 5000; PRAGMA temp_store = MEMORY;",
    )
}

/// Writes the schema into an empty database.
pub(crate) fn create_schema(connection: &Connection) -> Result<(), LedgerError> {
    let tables: String = SCHEMA.iter().map(|(_, sql)| format!("{sql};")).collect();
    let batch = format!(
        "BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; \
         {tables} COMMIT;"
    );
    connection.execute_batch(&batch).map_err(LedgerError::database("writing the schema"))
}

/// What keeps the database from being a ledger, if anything does.
pub(crate) fn schema_problem(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if pragma("application_id")? != APPLICATION_ID {
        return Ok(Some("the file is not a ledger".to_owned()));
    }
    let version = pragma("user_version")?;
    if version != SCHEMA_VERSION {
        return Ok(Some(format!("the file has version {version}, this program writes 1")));
    }
    let mut statement =
        connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name")?;
    let found = statement
        .query_map([], |row| {
            let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
            let (table, sql): (String, Option<String>) = (row.get(2)?, row.get(3)?);
            Ok((kind == "table" && table == name, name, sql))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (is_table, name, sql) in &found {
        let known = SCHEMA.iter().any(|(n, s)| n == name && Some(*s) == sql.as_deref());
        if !is_table || !known {
            let name = fluffy_base::Excerpt::new(name, 100);
            return Ok(Some(format!("the file's schema was changed: `{name}` does not belong")));
        }
    }
    let missing = SCHEMA.iter().find(|(name, _)| !found.iter().any(|(_, n, _)| n == name));
    Ok(missing.map(|(name, _)| format!("the file's schema was changed: `{name}` is missing")))
}

/// Which setting of the file is not a ledger's, if any. Entries can be read all the same.
pub(crate) fn settings_problem(connection: &Connection) -> rusqlite::Result<Option<String>> {
    for (name, expected) in SETTINGS {
        let found = connection.pragma_query_value(None, name, |row| {
            row.get_ref(0).map(|value| match value {
                ValueRef::Integer(number) => number.to_string(),
                other => String::from_utf8_lossy(other.as_bytes().unwrap_or_default()).into_owned(),
            })
        })?;
        if found != expected && !(name == "freelist_count" && is_trimming(connection)) {
            let found = fluffy_base::Excerpt::new(&found, 100);
            return Ok(Some(format!("the file's {name} is {found}, a ledger's is {expected}")));
        }
    }
    Ok(None)
}

/// Whether rows are leaving the database, by the mark beside it: then it has free pages.
fn is_trimming(connection: &Connection) -> bool {
    let dir = connection.path().and_then(|path| Path::new(path).parent()?.parent());
    dir.is_some_and(|dir| dir.join(crate::layout::TRIMMING).exists())
}

/// How many entries there are. Rows are numbered without gaps from 0; gaps are for verification.
pub(crate) fn size(connection: &Connection) -> rusqlite::Result<u64> {
    let last: Option<i64> =
        connection.query_row("SELECT max(seq) FROM entries", [], |row| row.get(0))?;
    Ok(last.and_then(|last| u64::try_from(last).ok()).map_or(0, |last| last + 1))
}

/// The stored hash of one entry.
pub(crate) fn entry_hash(connection: &Connection, seq: u64) -> Result<Digest, RowError> {
    let mut statement =
        connection.prepare_cached("SELECT entry_hash FROM entries WHERE seq = ?1")?;
    let mut rows = statement.query([key(seq)])?;
    match rows.next()? {
        Some(row) => digest(row, 0),
        None => Err(RowError::Database(rusqlite::Error::QueryReturnedNoRows)),
    }
}

/// The stored hash of the entry before number `seq`: what that one follows, and of the size the head.
pub(crate) fn hash_before(connection: &Connection, seq: u64) -> Result<Digest, RowError> {
    match seq.checked_sub(1) {
        None => Ok(Digest::GENESIS),
        Some(before) => match entry_hash(connection, before) {
            // The first row after those that have left: their record has the hash.
            Err(RowError::Database(rusqlite::Error::QueryReturnedNoRows)) => {
                let left = Trim::of(connection)?.filter(|trim| trim.to == seq);
                left.map(|trim| trim.prev)
                    .ok_or_else(|| RowError::Database(rusqlite::Error::QueryReturnedNoRows))
            }
            found => found,
        },
    }
}

/// Deletes the rows 1 to `to` (not itself), which are archived, in one transaction.
pub(crate) fn delete_before(connection: &Connection, to: u64) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("DELETE FROM entries WHERE seq > 0 AND seq < ?1")?;
    statement.execute([key(to)]).map(drop)
}

/// A sequence number as SQLite stores it. Numbers beyond SQLite's range name no row.
pub(crate) fn key(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Where a tile is stored: the level in the top byte, the index below.
pub(crate) fn tile_key(id: TileId) -> i64 {
    i64::from(id.level) << 56 | (key(id.index) & 0x00ff_ffff_ffff_ffff)
}

/// What a transaction wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// How many entries there are now.
    pub(crate) size: u64,
    /// How many of them are new.
    pub(crate) rows: u64,
}

/// Writes rows, and then those that `more` gives until it gives none, in one transaction: all of them
/// or none.
pub(crate) fn insert(
    connection: &Connection,
    rows: Vec<NewRow>,
    more: impl FnMut() -> Vec<NewRow>,
) -> rusqlite::Result<Written> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let written = insert_rows(connection, rows, more).and_then(|written| {
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(written)
    });
    if written.is_err() {
        // SQLite may have rolled back by itself; either way the caller accepts nothing more.
        let _ = connection.execute_batch("ROLLBACK");
    }
    written
}

fn insert_rows(
    connection: &Connection,
    mut rows: Vec<NewRow>,
    mut more: impl FnMut() -> Vec<NewRow>,
) -> rusqlite::Result<Written> {
    let mut entries = connection.prepare_cached(INSERT_ENTRY)?;
    let mut written = Written { size: 0, rows: 0 };
    while let Some(last) = rows.last() {
        written = Written { size: last.seq + 1, rows: written.rows + rows.len() as u64 };
        rows.iter().try_for_each(|row| insert_row(connection, &mut entries, row))?;
        rows = more();
    }
    Ok(written)
}

fn insert_row(
    connection: &Connection,
    entries: &mut Statement<'_>,
    row: &NewRow,
) -> rusqlite::Result<()> {
    let e = &row.entry;
    entries.execute(params![
        key(row.seq),
        row.entry_hash.as_bytes(),
        key(e.ts_ms),
        e.request_id,
        e.actor,
        e.intent,
        decision_code(e.decision),
        state_code(e.state_from),
        state_code(e.state_to),
        e.tool_name,
        e.params_hash.as_ref().map(Digest::as_bytes),
        e.error,
        row.detail,
        row.blob.as_ref().map(|blob| &blob.salted),
    ])?;
    row.tiles.iter().try_for_each(|tile| insert_tile(connection, tile))
}

/// Writes one complete tile.
pub(crate) fn insert_tile(connection: &Connection, tile: &Tile) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("INSERT INTO tiles VALUES (?1, ?2)")?;
    statement.execute(params![tile_key(tile.id()), tile.as_bytes()]).map(drop)
}

/// The private input of an entry, if it has one.
pub(crate) fn read_blob(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Blob>> {
    let mut statement = connection.prepare_cached("SELECT input FROM entries WHERE seq = ?1")?;
    let salted: Option<Option<Vec<u8>>> =
        statement.query_row([key(seq)], |row| row.get(0)).optional()?;
    Ok(salted.flatten().map(|salted| Blob { salted }))
}
