//! Verification of a stored ledger, level *bytes*: chain, details, inputs, tree and checkpoint.
//!
//! Entries are checked in chunks of 32,768, in parallel, in memory that does not grow with the
//! ledger. Every entry is checked against the stored hash of the one before it, so one change is one
//! finding and everything after it is still judged.
//!
//! **Invariant.** Nothing is taken as verified because it was not there: a missing row, tile or
//! input is a finding.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fluffy_base::Digest;
use rusqlite::Connection;

use crate::merkle::{Frontier, TILE_WIDTH, Tile, TileId, leaf_hash};
use crate::store::{self, ENTRY_COLUMNS, RowError, StoredEntry, key};
use crate::tree::read_tile;
use crate::{LedgerError, Located, Problem};

/// Entries of one chunk: a tile of level 2 stands on exactly one.
const CHUNK: u64 = TILE_WIDTH * TILE_WIDTH * TILE_WIDTH;
/// Levels of tiles within a chunk.
const CHUNK_LEVELS: u8 = 3;
/// More findings than this say nothing new.
pub(crate) const MAX_FINDINGS: usize = 100;

/// What a verification of the bytes found.
#[derive(Debug)]
pub struct ByteCheck {
    /// How many entries there are.
    pub entries: u64,
    /// Hash of the last entry, or 64 zeros.
    pub head: Digest,
    /// Root of the tree over what was read.
    pub tree_root: Digest,
    /// Everything that is wrong, in order; empty when the ledger is intact.
    pub findings: Vec<Located>,
}

/// Verifies every byte the ledger means anything by.
pub fn verify_bytes(path: &Path) -> Result<ByteCheck, LedgerError> {
    let connection = store::open_reader(path)?;
    let mut findings = Vec::new();
    let check = structure(&connection, &mut findings).and_then(|size| {
        let mut check = contents(path, size)?;
        strays(&connection, size, &mut check.findings)?;
        Ok(check)
    });
    let mut check = match check {
        Ok(check) => check,
        Err(error) => {
            findings.push(Located::nowhere(damage(error)?));
            ByteCheck {
                entries: 0,
                head: Digest::GENESIS,
                tree_root: crate::merkle::empty_root(),
                findings: Vec::new(),
            }
        }
    };
    findings.append(&mut check.findings);
    findings.sort_by_key(|finding| finding.seq.unwrap_or(0));
    findings.truncate(MAX_FINDINGS);
    Ok(ByteCheck { findings, ..check })
}

/// Verifies a range of entries; it starts at a multiple of 32 so that tiles are checked as well.
pub(crate) fn verify_range(
    connection: &Connection,
    range: Range<u64>,
) -> Result<Vec<Located>, LedgerError> {
    let mut chunk = Chunk::new(connection, range);
    match chunk.run() {
        Ok(()) => {}
        Err(error) => {
            let problem = damage(error.into())?;
            chunk.findings.push(Located { seq: Some(chunk.next), problem });
        }
    }
    Ok(chunk.findings)
}

/// Whether an error is damage to report or a failure to pass on.
pub(crate) fn damage(error: LedgerError) -> Result<Problem, LedgerError> {
    match error {
        LedgerError::Damaged(text) => Ok(Problem::Database(text)),
        LedgerError::Database { source, .. } if is_damage(&source) => {
            Ok(Problem::Database(source.to_string()))
        }
        other => Err(other),
    }
}

/// Whether SQLite says that the file itself is wrong, rather than that it could not be used.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, TypeMismatch, Unknown};
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(failure.code, DatabaseCorrupt | NotADatabase | TypeMismatch | Unknown)
        }
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::SqlInputError { .. } => true,
        _ => false,
    }
}

impl From<RowError> for LedgerError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Kind(_) => Self::Damaged(error.to_string()),
            RowError::Database(source) => Self::Database { action: "reading", source },
        }
    }
}

/// Checks the file as a database and as a ledger; gives the number of entries.
fn structure(connection: &Connection, findings: &mut Vec<Located>) -> Result<u64, LedgerError> {
    let database = LedgerError::database;
    if let Some(problem) = store::schema_problem(connection).map_err(database("reading"))? {
        return Err(LedgerError::Damaged(problem));
    }
    let mut statement =
        connection.prepare("PRAGMA quick_check(10)").map_err(database("checking the file"))?;
    let lines = statement
        .query_map([], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(database("checking the file"))?;
    let problems = lines.into_iter().filter(|line| line != "ok");
    findings.extend(problems.map(|line| Located::nowhere(Problem::Database(line))));
    store::size(connection).map_err(database("reading"))
}

/// Checks all entries of a ledger of `size` entries, chunk by chunk, on all processors.
fn contents(path: &Path, size: u64) -> Result<ByteCheck, LedgerError> {
    let chunks = size.div_ceil(CHUNK);
    let workers = thread::available_parallelism().map_or(1, |n| n.get() as u64).min(chunks.max(1));
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let work = || -> Result<(), LedgerError> {
        let connection = store::open_reader(path)?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= chunks {
                return Ok(());
            }
            let range = index * CHUNK..size.min((index + 1) * CHUNK);
            let outcome = check_chunk(&connection, index, range)?;
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(outcome);
        }
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|worker| {
            let stopped = |_| LedgerError::Stopped("a verification thread panicked".to_owned());
            worker.join().map_err(stopped)?
        })
    })?;
    let outcomes = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    assemble(path.to_owned(), size, outcomes)
}

/// What is left of a chunk once it is checked.
struct ChunkOutcome {
    index: u64,
    edge: Frontier,
    root: Digest,
    findings: Vec<Located>,
}

fn check_chunk(
    connection: &Connection,
    index: u64,
    range: Range<u64>,
) -> Result<ChunkOutcome, LedgerError> {
    let mut chunk = Chunk::new(connection, range);
    match chunk.run() {
        Ok(()) => {}
        Err(error) => {
            let problem = damage(error.into())?;
            chunk.findings.push(Located { seq: Some(chunk.next), problem });
        }
    }
    let root = chunk.edge.root();
    Ok(ChunkOutcome { index, edge: chunk.edge, root, findings: chunk.findings })
}

/// Joins the chunks: the tiles above them, the root, the head.
fn assemble(
    path: PathBuf,
    size: u64,
    mut outcomes: Vec<ChunkOutcome>,
) -> Result<ByteCheck, LedgerError> {
    outcomes.sort_by_key(|outcome| outcome.index);
    let connection = store::open_reader(&path)?;
    let mut findings = Vec::new();
    let mut top = Frontier::default();
    let mut last = None;
    for outcome in outcomes {
        findings.extend(outcome.findings);
        if outcome.edge.size() == CHUNK {
            let mut tiles = Vec::new();
            top.push(outcome.root, &mut tiles);
            for tile in tiles {
                let TileId { level, index } = tile.id();
                let id = TileId { level: level + CHUNK_LEVELS, index };
                compare_tile(&connection, id, &tile, &mut findings)?;
            }
        } else {
            last = Some(outcome.root);
        }
    }
    let tree_root = last.map_or_else(|| top.root(), |right| top.root_before(right));
    let head = match size.checked_sub(1) {
        Some(seq) => store::entry_hash(&connection, seq)?,
        None => Digest::GENESIS,
    };
    Ok(ByteCheck { entries: size, head, tree_root, findings })
}

/// Rows that no entry accounts for.
fn strays(
    connection: &Connection,
    size: u64,
    findings: &mut Vec<Located>,
) -> Result<(), LedgerError> {
    let count = |sql: &str| {
        connection
            .query_row(sql, [key(size)], |row| row.get::<_, i64>(0))
            .map_err(LedgerError::database("counting rows"))
    };
    if count("SELECT count(*) FROM entries WHERE seq < 0 OR seq >= ?1")? > 0 {
        findings.push(Located::nowhere(Problem::Stray("an entry with a number below 0")));
    }
    if count("SELECT count(*) FROM blobs WHERE seq < 0 OR seq >= ?1")? > 0 {
        findings.push(Located::nowhere(Problem::Stray("an input that belongs to no entry")));
    }
    let mut tiles = 0;
    let mut nodes = size / TILE_WIDTH;
    while nodes > 0 {
        tiles += nodes;
        nodes /= TILE_WIDTH;
    }
    if count("SELECT count(*) FROM tiles WHERE ?1 >= 0")? != key(tiles) {
        findings.push(Located::nowhere(Problem::Stray("a tile that the tree does not have")));
    }
    Ok(())
}

/// One run over neighbouring entries.
struct Chunk<'a> {
    connection: &'a Connection,
    range: Range<u64>,
    next: u64,
    edge: Frontier,
    findings: Vec<Located>,
    scratch: Vec<u8>,
}

impl<'a> Chunk<'a> {
    fn new(connection: &'a Connection, range: Range<u64>) -> Self {
        let next = range.start;
        let (edge, findings, scratch) = (Frontier::default(), Vec::new(), Vec::new());
        Self { connection, range, next, edge, findings, scratch }
    }

    fn run(&mut self) -> Result<(), RowError> {
        let mut prev = match self.range.start.checked_sub(1) {
            None => Some(Digest::GENESIS),
            Some(before) => Some(store::entry_hash(self.connection, before)?),
        };
        let connection = self.connection;
        let mut entries = connection.prepare_cached(&format!(
            "SELECT {ENTRY_COLUMNS} FROM entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq"
        ))?;
        let mut blobs = connection.prepare_cached(
            "SELECT seq, salt, bytes FROM blobs WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
        )?;
        let bounds = [key(self.range.start), key(self.range.end)];
        let mut rows = entries.query(bounds)?;
        let mut inputs = Inputs { rows: blobs.query(bounds)?, waiting: None };
        inputs.advance()?;
        while let Some(row) = rows.next()? {
            let entry = StoredEntry::from_row(row)?;
            if entry.seq != self.next {
                self.find(self.next, Problem::Missing { until: entry.seq });
                self.next = entry.seq;
                prev = None;
            }
            self.entry(&entry, prev, &mut inputs)?;
            prev = Some(entry.entry_hash);
            self.next += 1;
        }
        if self.next != self.range.end {
            self.find(self.next, Problem::Missing { until: self.range.end });
        }
        Ok(())
    }

    fn entry(
        &mut self,
        entry: &StoredEntry<'_>,
        prev: Option<Digest>,
        inputs: &mut Inputs<'_>,
    ) -> Result<(), RowError> {
        if let Some(prev) = prev {
            let computed = entry.view.hash(&prev, &mut self.scratch);
            if computed != entry.entry_hash {
                self.find(entry.seq, Problem::EntryHash { stored: entry.entry_hash, computed });
            }
        }
        let computed = Digest::of(entry.detail);
        if Some(computed) != entry.view.evidence_hash {
            self.find(entry.seq, Problem::DetailHash);
        }
        if let Some(problem) = inputs.check(entry)? {
            self.find(entry.seq, problem);
        }
        let mut tiles = Vec::new();
        self.edge.push(leaf_hash(&entry.entry_hash), &mut tiles);
        for tile in tiles {
            // The run starts at a multiple of the tile's width, so the tiles before it are whole.
            let TileId { level, index } = tile.id();
            let shift = crate::merkle::TILE_HEIGHT * (u32::from(level) + 1);
            let id = TileId { level, index: index + (self.range.start >> shift) };
            let aligned = self.range.start.trailing_zeros() >= shift || self.range.start == 0;
            if aligned {
                compare_tile(self.connection, id, &tile, &mut self.findings)?;
            }
        }
        Ok(())
    }

    fn find(&mut self, seq: u64, problem: Problem) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Located { seq: Some(seq), problem });
        }
    }
}

/// Compares a tile with the one that should be stored, and names the entry where they part.
fn compare_tile(
    connection: &Connection,
    id: TileId,
    computed: &Tile,
    findings: &mut Vec<Located>,
) -> Result<(), RowError> {
    use crate::tree::TileError;
    let width = 1_u64.checked_shl(crate::merkle::TILE_HEIGHT * u32::from(id.level)).unwrap_or(0);
    let first = id.index.saturating_mul(TILE_WIDTH).saturating_mul(width);
    let stored = match read_tile(connection, id) {
        Ok(stored) if stored.as_bytes() == computed.as_bytes() => return Ok(()),
        Ok(stored) => stored,
        Err(TileError::Row(error)) => return Err(error),
        Err(TileError::Missing(_) | TileError::Damaged(_)) => {
            findings.push(Located { seq: Some(first), problem: Problem::Tile { level: id.level } });
            return Ok(());
        }
    };
    let differs = |offset: &u64| stored.node(0, *offset) != computed.node(0, *offset);
    let offset = (0..TILE_WIDTH).find(differs).unwrap_or(0);
    let seq = Some(first + offset * width);
    findings.push(Located { seq, problem: Problem::Tile { level: id.level } });
    Ok(())
}

/// The private inputs, read in step with the entries.
struct Inputs<'a> {
    rows: rusqlite::Rows<'a>,
    waiting: Option<(u64, Digest)>,
}

impl Inputs<'_> {
    fn advance(&mut self) -> Result<(), RowError> {
        self.waiting = match self.rows.next()? {
            None => None,
            Some(row) => {
                let bytes = |column: usize| -> Result<&[u8], RowError> {
                    row.get_ref(column)?.as_blob().map_err(|_| RowError::Kind(column))
                };
                let seq = u64::try_from(row.get::<_, i64>(0)?).map_err(|_| RowError::Kind(0))?;
                Some((seq, Digest::of_parts(&[bytes(1)?, bytes(2)?])))
            }
        };
        Ok(())
    }

    /// Compares the entry's input with the hash its detail names.
    fn check(&mut self, entry: &StoredEntry<'_>) -> Result<Option<Problem>, RowError> {
        let named = named_input(entry.detail);
        let kept = match self.waiting {
            Some((seq, hash)) if seq <= entry.seq => {
                self.advance()?;
                (seq == entry.seq).then_some(hash)
            }
            _ => None,
        };
        Ok(match (named, kept) {
            (None, None) => None,
            (Some(named), Some(kept)) if named == kept.hex() => None,
            (Some(_), Some(_)) => Some(Problem::InputHash),
            (Some(_), None) => Some(Problem::InputMissing),
            (None, Some(_)) => Some(Problem::Stray("an input that its entry does not name")),
        })
    }
}

/// The hash after `"input_blob":` in a detail. Quotes inside strings are escaped, so these bytes can
/// only be the key.
fn named_input(detail: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b",\"input_blob\":\"";
    let at = memchr::memmem::find(detail, KEY)? + KEY.len();
    Some(detail.get(at..at + 64).unwrap_or_default())
}
