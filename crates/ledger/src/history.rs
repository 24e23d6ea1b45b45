//! Entries read and proved in one look: what is handed out is what was signed.
//!
//! Whoever goes on with something that the ledger remembers must know that it is what was recorded, and not what
//! somebody has made of the file since. Entries are read in order, each is held against its hash, its detail, its kept
//! input and the entry before it, and takes its place in the tree; where the tree has the size of the remembered
//! checkpoint, its root must be the signed one. What lies before the first of them counts by its place in the tree, and
//! is not read.
//!
//! **Invariant.** The bytes that are handed out are the bytes that were hashed: nothing is read twice.
//!
//! **Invariant.** Nothing counts before the end: whoever gathers entries drops them unless all of it holds.

use std::ops::ControlFlow;

use fluffy_base::Digest;
use rusqlite::{Connection, Row};

use crate::merkle::{self, Frontier, TILE_WIDTH, Tiled, leaf_hash};
use crate::recovery::{self, Memory, checkpoint_origin, tile_problem};
use crate::store::{self, ENTRY_COLUMNS, Link, RowError, StoredEntry, key};
use crate::tree::{self, read_tile};
use crate::verify::{compare_tile, damage, input_problem};
use crate::{
    Blob, Checkpoint, DetailView, Layout, LedgerError, Located, Problem, VerifyingKey, segment,
};

/// An entry on its way to being proved.
#[derive(Debug)]
pub struct ReadEntry<'a> {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub entry_hash: Digest,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// Id of the request, or the name of an event of the kernel's own.
    pub request_id: &'a str,
    /// ALLOW, DENY or HALT.
    pub decision: &'a str,
    /// The tool that was asked for.
    pub tool_name: Option<&'a str>,
    /// What for.
    pub intent: &'a str,
    /// Why it was refused or failed.
    pub error: Option<&'a str>,
    /// What it knows beyond its link.
    pub detail: DetailView<'a>,
    /// The same as its bytes.
    pub detail_bytes: &'a [u8],
    /// The private input, with its salt.
    salted: Option<&'a [u8]>,
}

/// What was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proved {
    /// The segment that was read.
    pub segment: u32,
    /// How many entries the segment has.
    pub size: u64,
    /// How many of them the remembered checkpoint signs. The rest follows them link by link, and was written by
    /// whoever could not sign it any more.
    pub signed: u64,
    /// The signed root.
    pub root: Digest,
}

impl ReadEntry<'_> {
    /// The private input, without its salt.
    pub fn input(&self) -> Option<&[u8]> {
        self.salted.map(|salted| salted.get(Blob::SALT_BYTES..).unwrap_or_default())
    }
}

/// Reads the entries of the newest segment from `first` on, to the end or up to `until`, and proves them. `found` is
/// given each; what it gathers counts only if this gives [`Proved`]. Otherwise the answer says what is wrong and where.
pub fn prove(
    layout: &Layout,
    key: &VerifyingKey,
    first: u64,
    until: Option<u64>,
    mut found: impl FnMut(&ReadEntry<'_>) -> ControlFlow<()>,
) -> Result<Result<Proved, Located>, LedgerError> {
    let promised = match promised(layout, key)? {
        Ok(promised) => promised,
        Err(located) => return Ok(Err(located)),
    };
    let run = || -> Result<Result<Proved, Located>, LedgerError> {
        let connection = store::open_reader(&layout.segment(promised.segment))?;
        let reading = LedgerError::database;
        // One transaction: what is counted, read and proved is of one moment.
        connection.execute_batch("BEGIN").map_err(reading("reading"))?;
        if let Some(problem) = store::schema_problem(&connection).map_err(reading("reading"))? {
            return Err(LedgerError::Damaged(problem));
        }
        let named = checkpoint_origin(&segment::first_kernel(&connection)?, promised.segment);
        if named != promised.checkpoint.origin {
            let text = "it is another ledger than the remembered one".to_owned();
            return Ok(Err(Located::nowhere(Problem::Protocol(text))));
        }
        let size = store::size(&connection).map_err(reading("counting entries"))?;
        let signed = promised.checkpoint.size;
        let end = until.unwrap_or(size).min(size);
        // Tiles are compared from their first entry on.
        let start = first.min(signed).min(end) / TILE_WIDTH * TILE_WIDTH;
        let edge = match tree::restore(&connection, start) {
            Ok(edge) => edge,
            Err(error) => return Ok(Err(Located::at(start, tile_problem(error)?))),
        };
        let Promised { segment, checkpoint: promised } = promised;
        let found_so_far = Vec::new();
        let connection = &connection;
        let reader = Reader { connection, segment, edge, end, promised, found: found_so_far };
        reader.run(first, size, &mut found)
    };
    run().or_else(|error| Ok(Err(Located::nowhere(damage(error)?))))
}

/// What is remembered of the newest segment.
struct Promised {
    segment: u32,
    checkpoint: Checkpoint,
}

fn promised(layout: &Layout, key: &VerifyingKey) -> Result<Result<Promised, Located>, LedgerError> {
    let nowhere = |problem| Ok(Err(Located::nowhere(problem)));
    // Read first: what is remembered is never ahead of what is written.
    let memory = recovery::recall(layout, key)?;
    let active = layout.active()?;
    match (memory, active) {
        (_, None) => nowhere(Problem::LedgerMissing),
        (Memory::None, _) => nowhere(Problem::CheckpointMissing),
        (Memory::Forged(why), _) => nowhere(Problem::CheckpointForged(why)),
        (Memory::Of { segment, checkpoint }, Some(active)) if segment == active => {
            Ok(Ok(Promised { segment, checkpoint }))
        }
        (Memory::Of { segment, .. }, Some(active)) => Ok(Err(recovery::outdated(segment, active))),
    }
}

struct Reader<'a> {
    connection: &'a Connection,
    segment: u32,
    edge: Frontier,
    end: u64,
    promised: Checkpoint,
    found: Vec<Located>,
}

impl Reader<'_> {
    fn run(
        mut self,
        first: u64,
        size: u64,
        found: &mut impl FnMut(&ReadEntry<'_>) -> ControlFlow<()>,
    ) -> Result<Result<Proved, Located>, LedgerError> {
        self.check_root();
        self.read(first, found)?;
        let signed = self.promised.size;
        if size < signed {
            let problem = Problem::Truncated { found: size, promised: signed };
            self.found.push(Located::at(size, problem));
        } else if self.found.is_empty()
            && let Some(problem) = self.continued()?
        {
            self.found.push(Located::nowhere(problem));
        }
        // Of a row with a new hash the next one tells as well, and the tree tells which of them it was.
        let worst = self.found.into_iter().min_by_key(|located| located.seq.unwrap_or(u64::MAX));
        let root = self.promised.root;
        Ok(worst.map_or(Ok(Proved { segment: self.segment, size, signed, root }), Err))
    }

    fn read(
        &mut self,
        first: u64,
        found: &mut impl FnMut(&ReadEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), LedgerError> {
        let reading = LedgerError::database;
        let sql = format!(
            "SELECT {ENTRY_COLUMNS}, input FROM entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq"
        );
        let mut statement = self.connection.prepare(&sql).map_err(reading("reading"))?;
        let mut prev = store::hash_before(self.connection, self.edge.size())?;
        let range = [key(self.edge.size()), key(self.end)];
        let mut rows = statement.query(range).map_err(reading("reading"))?;
        let mut scratch = Vec::new();
        let mut gathers = true;
        while let Some(row) = rows.next().map_err(reading("reading"))? {
            let seq = self.edge.size();
            // The tile is read to its end, because it tells which entry it was.
            if !self.found.is_empty() && seq.is_multiple_of(TILE_WIDTH) {
                return Ok(());
            }
            let link = Link::from_row(row)?;
            if link.seq != seq {
                self.found.push(Located::at(seq, Problem::Missing { until: link.seq }));
                return Ok(());
            }
            match Checked::of(link, row, &prev, &mut scratch) {
                Err(RowError::Kind(column)) => {
                    let text = RowError::Kind(column).to_string();
                    self.found.push(Located::at(seq, Problem::Database(text)));
                }
                Err(error) => return Err(error.into()),
                Ok(Err(problem)) => self.found.push(Located::at(seq, problem)),
                Ok(Ok(checked)) if gathers && seq >= first && self.found.is_empty() => {
                    gathers = found(&checked.handed_out()).is_continue();
                }
                Ok(Ok(_)) => {}
            }
            prev = link.entry_hash;
            self.place(link)?;
        }
        if self.edge.size() < self.end {
            let missing = Problem::Missing { until: self.end };
            self.found.push(Located::at(self.edge.size(), missing));
        }
        Ok(())
    }

    /// Gives an entry its place in the tree, and compares the tiles that it completes.
    fn place(&mut self, link: Link) -> Result<(), LedgerError> {
        let mut tiles = Vec::new();
        self.edge.push(leaf_hash(&link.entry_hash), &mut tiles);
        for tile in tiles {
            compare_tile(self.connection, tile.id(), &tile, &mut self.found)?;
        }
        self.check_root();
        Ok(())
    }

    /// Where the tree has the signed size, its root is the signed one.
    fn check_root(&mut self) {
        let Checkpoint { size, root, .. } = &self.promised;
        if self.edge.size() == *size && self.edge.root() != *root && self.found.is_empty() {
            self.found.push(Located::nowhere(Problem::Rewritten { size: *size }));
        }
    }

    /// Where reading ended before the signed size: whether the signed tree continues what was read.
    fn continued(&self) -> Result<Option<Problem>, LedgerError> {
        let (read, Checkpoint { size, root, .. }) = (self.edge.size(), &self.promised);
        if read >= *size {
            return Ok(None);
        }
        let edge = match tree::restore(self.connection, *size) {
            Ok(edge) => edge,
            Err(error) => return tile_problem(error).map(Some),
        };
        let tiles = Tiled::new(&edge, |id| read_tile(self.connection, id).map(std::sync::Arc::new));
        let Ok(proof) = merkle::consistency_proof(&tiles, read, *size) else {
            return Ok(Some(Problem::Rewritten { size: *size }));
        };
        let holds =
            merkle::verify_consistency(read, &self.edge.root(), *size, root, &proof).is_ok();
        Ok((!holds).then_some(Problem::Rewritten { size: *size }))
    }
}

/// An entry that is what its own hash says.
struct Checked<'a> {
    entry: StoredEntry<'a>,
    detail: DetailView<'a>,
    salted: Option<&'a [u8]>,
}

impl<'a> Checked<'a> {
    fn of(
        link: Link,
        row: &'a Row<'_>,
        prev: &Digest,
        scratch: &mut Vec<u8>,
    ) -> Result<Result<Self, Problem>, RowError> {
        let entry = link.rest_of(row)?;
        let salted = store::input_column(row)?;
        let (stored, computed) = (link.entry_hash, entry.view().hash(prev, scratch));
        if stored != computed {
            return Ok(Err(Problem::EntryHash { stored, computed }));
        }
        if let Some(problem) = input_problem(entry.detail, salted) {
            return Ok(Err(problem));
        }
        let detail = match DetailView::parse(entry.detail) {
            Ok(detail) => detail,
            Err(error) => return Ok(Err(Problem::Format(format!("its detail: {error}")))),
        };
        if detail.seq != link.seq {
            let text = format!("the entry says that it is number {}", detail.seq);
            return Ok(Err(Problem::Format(text)));
        }
        Ok(Ok(Self { entry, detail, salted }))
    }

    fn handed_out(self) -> ReadEntry<'a> {
        let StoredEntry { seq, entry_hash, columns, detail: detail_bytes } = self.entry;
        ReadEntry {
            seq,
            entry_hash,
            ts_ms: columns.ts_ms,
            request_id: columns.request_id,
            decision: columns.decision,
            tool_name: columns.tool_name,
            intent: columns.intent,
            error: columns.error,
            detail: self.detail,
            detail_bytes,
            salted: self.salted,
        }
    }
}

/// An entry as a database has it, seen in passing.
#[derive(Debug)]
pub struct Glimpse<'a> {
    /// Its number.
    pub seq: u64,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// What it knows beyond its link.
    pub detail: DetailView<'a>,
    connection: &'a Connection,
}

impl Glimpse<'_> {
    /// The private input, looked up when it is asked for.
    pub fn input(&self) -> Result<Option<Blob>, LedgerError> {
        store::read_blob(self.connection, self.seq)
            .map_err(LedgerError::database("reading an input"))
    }
}

/// Looks back over a segment from its last entry, until it is told to stop. Nothing is proved, and what cannot be read
/// is passed over: this finds entries, and [`prove`] says whether they hold.
pub fn look_back(
    database: &std::path::Path,
    mut found: impl FnMut(&Glimpse<'_>) -> ControlFlow<()>,
) -> Result<(), LedgerError> {
    let reading = LedgerError::database;
    let connection = store::open_reader(database)?;
    connection.execute_batch("BEGIN").map_err(reading("reading"))?;
    let mut statement = connection
        .prepare("SELECT seq, ts_ms, detail FROM entries ORDER BY seq DESC")
        .map_err(reading("reading"))?;
    let mut rows = statement.query([]).map_err(reading("reading"))?;
    while let Some(row) = rows.next().map_err(reading("reading"))? {
        let (Ok(seq), Ok(ts_ms), Ok(detail)) =
            (store::number(row, 0), store::number(row, 1), store::blob(row, 2))
        else {
            continue;
        };
        let Ok(detail) = DetailView::parse(detail) else { continue };
        if found(&Glimpse { seq, ts_ms, detail, connection: &connection }).is_break() {
            break;
        }
    }
    Ok(())
}
