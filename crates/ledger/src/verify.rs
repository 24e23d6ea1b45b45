//! Verification of a stored ledger, level *bytes*: chain, details, inputs, tree and checkpoint.
//!
//! Entries are checked in chunks of 1,024, in parallel; of a chunk that is done only its root is kept.
//! Within a chunk the entries of a tile are read first and hashed together, which takes half the time.
//! Every entry is checked against the stored hash of the one before it, so one change is one finding
//! and everything after it is still judged.
//!
//! **Invariant.** Nothing is taken as verified because it was not there: a missing row, tile or
//! input is a finding.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;

use fluffy_base::Digest;
use memchr::memmem::Finder;
use rusqlite::Connection;

use crate::batch::Batch;
use crate::ledger::wal_of;
use crate::merkle::{Frontier, TILE_HEIGHT, TILE_WIDTH, Tile, TileId, leaf_hash, leaf_hashes};
use crate::store::{self, ENTRY_COLUMNS, Link, RowError, key, tile_key};
use crate::tree::read_tile;
use crate::trim::{Leaves, Trim};
use crate::{LedgerError, Located, Problem};

/// Entries of one chunk: a tile of level 1 stands on exactly one.
const CHUNK: u64 = TILE_WIDTH * TILE_WIDTH;
/// More entries than fit on a page: their hashes alone take 64 bytes each, and of those that have left
/// the tiles still do.
const ENTRIES_PER_PAGE: u64 = 64;
/// Levels of tiles within a chunk.
const CHUNK_LEVELS: u8 = 2;
/// Levels that a tree of all numbers that the store can count could have.
const TILE_LEVELS: u8 = 12;
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

/// Verifies the file as a database: what SQLite has to say about its pages. It finds damage that
/// changes nothing of what the ledger says, such as a wrong count of free bytes.
pub fn verify_structure(path: &Path) -> Result<Vec<Located>, LedgerError> {
    let checking = LedgerError::database("checking the file");
    let connection = store::open_reader(path)?;
    let lines = connection.prepare("PRAGMA quick_check(10)").and_then(|mut statement| {
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        lines.collect::<rusqlite::Result<Vec<_>>>()
    });
    match lines {
        Err(error) => Ok(vec![Located::nowhere(damage(checking(error))?)]),
        Ok(lines) => {
            let problems = lines.into_iter().filter(|line| line != "ok");
            Ok(problems.map(|line| Located::nowhere(Problem::Database(line))).collect())
        }
    }
}

/// Verifies every byte the ledger means anything by: every row of every table, read through the
/// database's own tree and held against hashes.
pub fn verify_bytes(path: &Path) -> Result<ByteCheck, LedgerError> {
    let connection = store::open_reader(path)?;
    let mut findings = Vec::new();
    let check = structure(&connection, path, &mut findings).and_then(|extent| {
        let trim = Trim::of(&connection)?;
        let mut check = contents(path, extent.judged, trim.as_ref())?;
        check.entries = extent.size;
        check.findings.extend(extent.gap);
        check.findings.extend(strays(&connection, extent.size)?);
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
    Ok(Chunk::judged(connection, range, None)?.findings)
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
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, TooBig, TypeMismatch, Unknown};
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(failure.code, DatabaseCorrupt | NotADatabase | TooBig | TypeMismatch | Unknown)
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
///
/// It leaves a read transaction open, so that what is counted later is counted at the same moment,
/// whatever a writer adds meanwhile.
fn structure(
    connection: &Connection,
    path: &Path,
    findings: &mut Vec<Located>,
) -> Result<Extent, LedgerError> {
    let database = LedgerError::database;
    connection.execute_batch("BEGIN").map_err(database("reading"))?;
    if let Some(problem) = store::schema_problem(connection).map_err(database("reading"))? {
        return Err(LedgerError::Damaged(problem));
    }
    let setting = store::settings_problem(connection).map_err(database("reading"))?;
    findings.extend(setting.map(|problem| Located::nowhere(Problem::Database(problem))));
    if let Some(problem) = length_problem(connection, path)? {
        findings.push(Located::nowhere(Problem::Database(problem)));
    }
    Extent::of(connection)
}

/// Whether a closed file is longer or shorter than its pages. While there is a log, some pages are
/// in it.
fn length_problem(connection: &Connection, path: &Path) -> Result<Option<String>, LedgerError> {
    let wal = wal_of(path);
    let logged = || std::fs::metadata(&wal).is_ok_and(|log| log.len() > 0);
    let before = logged();
    let length = std::fs::metadata(path).map_err(LedgerError::file("look at", path))?.len();
    let pages: i64 = connection
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .map_err(LedgerError::database("reading"))?;
    let expected = pages.unsigned_abs().saturating_mul(store::PAGE_BYTES);
    let wrong = !before && !logged() && length != expected;
    Ok(wrong.then(|| format!("the file has {length} bytes, its pages {expected}")))
}

/// How far the entries of a database reach.
pub(crate) struct Extent {
    /// One more than the largest number.
    pub(crate) size: u64,
    /// How many of them are worth judging: all, unless so many numbers are missing that listing
    /// them would take longer than checking the rest. Then, those before the first that is missing.
    pub(crate) judged: u64,
    /// The first missing number, where not all are judged.
    pub(crate) gap: Option<Located>,
}

impl Extent {
    /// Looks how far the entries reach. A number that the file is far too small for is somebody's
    /// hand, and the work ends at the first gap; counting all rows would cost as much as reading them.
    pub(crate) fn of(connection: &Connection) -> Result<Self, LedgerError> {
        let counting = LedgerError::database;
        let size = store::size(connection).map_err(counting("counting entries"))?;
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .map_err(counting("counting pages"))?;
        if size / ENTRIES_PER_PAGE <= pages.unsigned_abs() {
            return Ok(Self { size, judged: size, gap: None });
        }
        let (judged, until) = first_gap(connection).map_err(counting("counting entries"))?;
        let gap = Some(Located::at(judged, Problem::Missing { until: until.unwrap_or(size) }));
        Ok(Self { size, judged, gap })
    }
}

/// The first number without an entry, and the next one with.
fn first_gap(connection: &Connection) -> rusqlite::Result<(u64, Option<u64>)> {
    let mut statement =
        connection.prepare("SELECT seq FROM entries WHERE seq >= 0 ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut next = 0;
    while let Some(row) = rows.next()? {
        let seq = row.get::<_, i64>(0)?.unsigned_abs();
        if seq != next {
            return Ok((next, Some(seq)));
        }
        next += 1;
    }
    Ok((next, None))
}

/// Checks all entries of a ledger of `size` entries, chunk by chunk, on all processors.
fn contents(path: &Path, size: u64, trim: Option<&Trim>) -> Result<ByteCheck, LedgerError> {
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
            let outcome = check_chunk(&connection, index, range, trim.cloned())?;
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
    entries: u64,
    root: Digest,
    findings: Vec<Located>,
}

fn check_chunk(
    connection: &Connection,
    index: u64,
    range: Range<u64>,
    trim: Option<Trim>,
) -> Result<ChunkOutcome, LedgerError> {
    let chunk = Chunk::judged(connection, range, trim)?;
    let (entries, root) = (chunk.edge.size(), chunk.edge.root());
    Ok(ChunkOutcome { index, entries, root, findings: chunk.findings })
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
        if outcome.entries == CHUNK {
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
    let head = store::hash_before(&connection, size)?;
    Ok(ByteCheck { entries: size, head, tree_root, findings })
}

/// Rows that no entry accounts for. Together with the entries' own checks, which want every input
/// and every tile that should be there, nothing else is left.
pub(crate) fn strays(connection: &Connection, size: u64) -> Result<Vec<Located>, LedgerError> {
    let any = |sql: &str, from: i64, to: i64| {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_row([from, to], |row| row.get::<_, bool>(0))
    };
    let outside = |table: &str, key: &str| {
        any(
            &format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {key} < ?1 OR {key} >= ?2)"),
            0,
            store::key(size),
        )
    };
    let tiles = || -> rusqlite::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tiles WHERE id >= ?1 AND id < ?2)";
        let mut stray = any(sql, i64::MIN, 0)?;
        for level in 0..TILE_LEVELS {
            let complete = size >> (TILE_HEIGHT * (u32::from(level) + 1));
            let first = tile_key(TileId { level, index: complete });
            stray |= any(sql, first, tile_key(TileId { level: level + 1, index: 0 }))?;
        }
        Ok(stray || any(sql, tile_key(TileId { level: TILE_LEVELS, index: 0 }), i64::MAX)?)
    };
    let counting = LedgerError::database;
    let mut findings = Vec::new();
    let mut find = |what| findings.push(Located::nowhere(Problem::Stray(what)));
    if outside("entries", "seq").map_err(counting("counting rows"))? {
        find("an entry with a number below 0");
    }
    if tiles().map_err(counting("counting rows"))? {
        find("a tile that the tree does not have");
    }
    Ok(findings)
}

/// One run over neighbouring entries.
struct Chunk<'a> {
    connection: &'a Connection,
    range: Range<u64>,
    /// What has left the database, as far as it was asked for.
    trim: Option<Trim>,
    next: u64,
    edge: Frontier,
    findings: Vec<Located>,
    read: Batch,
}

impl<'a> Chunk<'a> {
    /// A run that went as far as the file can be read.
    fn judged(
        connection: &'a Connection,
        range: Range<u64>,
        trim: Option<Trim>,
    ) -> Result<Self, LedgerError> {
        let next = range.start;
        let (edge, findings, read) = (Frontier::default(), Vec::new(), Batch::default());
        let mut chunk = Self { connection, range, trim, next, edge, findings, read };
        let ended = chunk.run();
        // Also what was read before the file could not be read any further.
        for error in [chunk.judge().err(), ended.err()].into_iter().flatten() {
            let problem = damage(error.into())?;
            chunk.findings.push(Located { seq: Some(chunk.next), problem });
        }
        Ok(chunk)
    }

    fn run(&mut self) -> Result<(), RowError> {
        let mut prev = self.hash_before_start()?;
        let connection = self.connection;
        let mut entries = connection.prepare_cached(&format!(
            "SELECT {ENTRY_COLUMNS}, input FROM entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq"
        ))?;
        let mut rows = entries.query([key(self.range.start), key(self.range.end)])?;
        while let Some(row) = rows.next()? {
            let link = Link::from_row(row)?;
            if link.seq != self.next {
                prev = self.pass_over(link.seq)?;
            }
            self.read.take(link, row, prev)?;
            prev = Some(link.entry_hash);
            self.next += 1;
            if self.next.is_multiple_of(TILE_WIDTH) || self.read.is_full() {
                self.judge()?;
            }
        }
        if self.next != self.range.end {
            self.pass_over(self.range.end)?;
        }
        Ok(())
    }

    /// Hash of the entry before the run; `None` where that has left and is not the last that did.
    fn hash_before_start(&mut self) -> Result<Option<Digest>, RowError> {
        let start = self.range.start;
        if start > 0 && self.has_left(start - 1..start)? {
            return Ok(self.trim.as_ref().filter(|trim| trim.to == start).map(|trim| trim.prev));
        }
        store::hash_before(self.connection, start).map(Some)
    }

    /// Goes on at `until`: over entries that have left by the tree's own leaves, over others by
    /// reporting them. Gives the hash of the last, where it is known.
    fn pass_over(&mut self, until: u64) -> Result<Option<Digest>, RowError> {
        self.judge()?;
        if self.has_left(self.next..until)? {
            self.take_leaves(until)?;
            return Ok(self.trim.as_ref().filter(|trim| trim.to == until).map(|trim| trim.prev));
        }
        self.find(self.next, Problem::Missing { until });
        let mut tiles = Vec::new();
        // Their places stay empty, so that those after them keep theirs.
        while self.next < until {
            self.edge.push(leaf_hash(&Digest::GENESIS), &mut tiles);
            self.next += 1;
        }
        Ok(None)
    }

    /// Whether an entry says that these have left. It is asked for again where what is known does not
    /// explain a gap: a kernel may have trimmed the database meanwhile.
    fn has_left(&mut self, range: Range<u64>) -> Result<bool, RowError> {
        let explains = |trim: &Option<Trim>| trim.as_ref().is_some_and(|t| t.covers(range.clone()));
        if explains(&self.trim) {
            return Ok(store::entry_hash(self.connection, range.start).is_err());
        }
        if range.start == 0 || store::entry_hash(self.connection, range.start).is_ok() {
            return Ok(false);
        }
        self.trim = Trim::of(self.connection)?;
        Ok(explains(&self.trim))
    }

    /// Gives entries that have left their places, by the leaves in the tiles.
    fn take_leaves(&mut self, until: u64) -> Result<(), RowError> {
        let mut leaves = Leaves::new(self.connection);
        while self.next < until {
            let leaf = match leaves.leaf(self.next) {
                Ok(leaf) => leaf,
                Err(crate::tree::TileError::Row(error)) => return Err(error),
                Err(_) => {
                    self.find(self.next, Problem::Tile { level: 0 });
                    Digest::GENESIS
                }
            };
            self.place(&[leaf])?;
            self.next += 1;
        }
        Ok(())
    }

    /// Judges what was read, and gives it its places in the tree.
    fn judge(&mut self) -> Result<(), RowError> {
        let findings = &mut self.findings;
        let hashes = self.read.judge(|seq, problem| {
            if findings.len() < MAX_FINDINGS {
                findings.push(Located { seq: Some(seq), problem });
            }
        });
        self.place(&leaf_hashes(&hashes))
    }

    /// Gives entries their places in the tree, and compares the tiles that they complete.
    fn place(&mut self, leaves: &[Digest]) -> Result<(), RowError> {
        let mut tiles = Vec::new();
        self.edge.extend(leaves, &mut tiles);
        for tile in tiles {
            // The run starts at a multiple of the tile's width, so the tiles before it are whole.
            let TileId { level, index } = tile.id();
            let shift = TILE_HEIGHT * (u32::from(level) + 1);
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
pub(crate) fn compare_tile(
    connection: &Connection,
    id: TileId,
    computed: &Tile,
    findings: &mut Vec<Located>,
) -> Result<(), RowError> {
    use crate::tree::TileError;
    let width = 1_u64.checked_shl(TILE_HEIGHT * u32::from(id.level)).unwrap_or(0);
    let first = id.index.saturating_mul(TILE_WIDTH).saturating_mul(width);
    if findings.len() >= MAX_FINDINGS {
        return Ok(());
    }
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

/// What is wrong with an entry's kept input, held against the hash that its detail names.
pub(crate) fn input_problem(detail: &[u8], kept: Option<&[u8]>) -> Option<Problem> {
    kept_problem(detail, kept.map(Digest::of))
}

/// The same for an input whose hash is known.
pub(crate) fn kept_problem(detail: &[u8], kept: Option<Digest>) -> Option<Problem> {
    match (named_input(detail), kept) {
        (None, None) => None,
        (Some(named), Some(kept)) if named == kept.hex() => None,
        (Some(_), Some(_)) => Some(Problem::InputHash),
        (Some(_), None) => Some(Problem::InputMissing),
        (None, Some(_)) => Some(Problem::Stray("an input that its entry does not name")),
    }
}

/// The hash after `"input_blob":` in a detail. Quotes inside strings are escaped, so these bytes can
/// only be the key.
pub(crate) fn named_input(detail: &[u8]) -> Option<&[u8]> {
    const KEY: &str = ",\"input_blob\":\"";
    // Made once: preparing the search costs more than the search.
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(KEY));
    let at = FINDER.find(detail)? + KEY.len();
    Some(detail.get(at..at + 64).unwrap_or_default())
}
