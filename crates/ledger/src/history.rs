//! Entries read and proved in one look: what is handed out is what was signed.
//!
//! Whoever goes on with something that the ledger remembers must know that it is what was recorded, and not what
//! somebody has made of the file since. Entries are read in order, each is held against its hash, its detail, its kept
//! input and the entry before it, and takes its place in the tree; where the tree has the size of the remembered
//! checkpoint, its root must be the signed one. What lies before the first of them counts by its place in the tree, and
//! is not read. What has left the database is read from its archive; what retention deleted counts by its leaf.
//!
//! **Invariant.** The bytes that are handed out are the bytes that were hashed: nothing is read twice.
//!
//! **Invariant.** Nothing counts before the end: whoever gathers entries drops them unless all of it holds.

use std::ops::{ControlFlow, Range};

use fluffy_base::Digest;
use rusqlite::{Connection, Row};

use crate::archive::{ArchiveFile, Line};
use crate::held::{Held, Part};
use crate::merkle::{self, Frontier, TILE_WIDTH, Tiled, leaf_hash};
use crate::recovery::{self, Memory, checkpoint_origin, tile_problem};
use crate::store::{self, ENTRY_COLUMNS, Link, RowError, StoredEntry, key};
use crate::tree::{self, read_tile};
use crate::trim::Leaves;
use crate::verify::{compare_tile, damage, input_problem};
use crate::{
    Blob, Checkpoint, DetailView, EntryView, Layout, LedgerError, Located, Problem, VerifyingKey,
    archive, query, segment,
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
    /// Who asked.
    pub actor: &'a str,
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
    /// The columns, for a copy.
    columns: EntryView<'a>,
    /// Hash of the entry before it.
    prev: Digest,
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
    /// The entries from 1 to this one (not itself) are not held any more: retention deleted them. 0 where all are held
    /// that were wanted.
    pub gone_to: u64,
}

impl ReadEntry<'_> {
    /// The private input, without its salt.
    pub fn input(&self) -> Option<&[u8]> {
        self.salted.map(|salted| salted.get(Blob::SALT_BYTES..).unwrap_or_default())
    }

    /// All of it, as a line of an archive has it: whoever keeps this can prove the entry with [`prove_copy`] when the
    /// ledger does not hold it any more.
    pub fn copy(&self) -> Result<Vec<u8>, LedgerError> {
        let (seq, entry_hash, columns) = (self.seq, self.entry_hash, self.columns);
        let stored = StoredEntry { seq, entry_hash, columns, detail: self.detail_bytes };
        let entry = query::owned(&stored, self.prev)?;
        let mut text = Vec::new();
        archive::write_line(&mut text, &entry, self.detail_bytes, self.salted)?;
        Ok(text)
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
        let (held, size) = match opened(layout, &promised)? {
            Ok(opened) => opened,
            Err(located) => return Ok(Err(located)),
        };
        let signed = promised.checkpoint.size;
        let end = until.unwrap_or(size).min(size);
        // Tiles are compared from their first entry on.
        let start = first.min(signed).min(end) / TILE_WIDTH * TILE_WIDTH;
        let edge = match tree::restore(&held.connection, start) {
            Ok(edge) => edge,
            Err(error) => return Ok(Err(Located::at(start, tile_problem(error)?))),
        };
        let Promised { segment, checkpoint: promised } = promised;
        let found_so_far = Vec::new();
        let (connection, held) = (&held.connection, &held);
        let reader = Reader {
            connection,
            held,
            segment,
            edge,
            end,
            promised,
            gone_to: 0,
            found: found_so_far,
        };
        reader.run(first, size, &mut found)
    };
    run().or_else(|error| Ok(Err(Located::nowhere(damage(error)?))))
}

/// Proves one entry of the newest segment and hands it out, wherever it is held: by its own hash, and by its place under
/// the signed root; one that is not signed yet by every entry between. `None` where there is no such entry any more.
pub fn prove_one(
    layout: &Layout,
    key: &VerifyingKey,
    seq: u64,
    found: impl FnOnce(&ReadEntry<'_>),
) -> Result<Result<Option<Proved>, Located>, LedgerError> {
    let promised = match promised(layout, key)? {
        Ok(promised) => promised,
        Err(located) => return Ok(Err(located)),
    };
    if seq >= promised.checkpoint.size {
        let (mut found, mut seen) = (Some(found), false);
        let proved = prove(layout, key, seq, Some(seq.saturating_add(1)), |entry| {
            if let (true, Some(found)) = (entry.seq == seq, found.take()) {
                found(entry);
                seen = true;
            }
            ControlFlow::Continue(())
        })?;
        return Ok(proved.map(|proved| seen.then_some(proved)));
    }
    let run = || -> Result<Result<Option<Proved>, Located>, LedgerError> {
        match opened(layout, &promised)? {
            Ok((held, size)) => signed_one(&held, &promised, size, seq, found),
            Err(located) => Ok(Err(located)),
        }
    };
    run().or_else(|error| Ok(Err(Located::nowhere(damage(error)?))))
}

/// Proves a copy of an entry ([`ReadEntry::copy`]) by its own hash and its place under the signed root, and hands it out.
pub fn prove_copy(
    layout: &Layout,
    key: &VerifyingKey,
    copy: &[u8],
    found: impl FnOnce(&ReadEntry<'_>),
) -> Result<Result<Proved, Located>, LedgerError> {
    let promised = match promised(layout, key)? {
        Ok(promised) => promised,
        Err(located) => return Ok(Err(located)),
    };
    let line = match Line::parse(copy, &mut Vec::new()) {
        Ok(line) => line,
        Err(problem) => return Ok(Err(Located::nowhere(problem))),
    };
    let run = || -> Result<Result<Proved, Located>, LedgerError> {
        match opened(layout, &promised)? {
            Ok((held, size)) => {
                let proved = promised.proved(size);
                let placed = placed(&held, &promised, line.ledger_seq, &line.entry_hash)?;
                Ok(placed.and_then(|()| hand_line(&line, found)).map(|()| proved))
            }
            Err(located) => Ok(Err(located)),
        }
    };
    run().or_else(|error| Ok(Err(Located::nowhere(damage(error)?))))
}

fn hand_line(line: &Line, found: impl FnOnce(&ReadEntry<'_>)) -> Result<(), Located> {
    let checked = Checked::of_line(line);
    let checked = checked.map_err(|problem| Located::at(line.ledger_seq, problem))?;
    found(&checked.handed_out());
    Ok(())
}

/// Whether the signed tree has an entry at its place.
fn placed(
    held: &Held,
    promised: &Promised,
    seq: u64,
    hash: &Digest,
) -> Result<Result<(), Located>, LedgerError> {
    let (connection, Checkpoint { size, root, .. }) = (&held.connection, &promised.checkpoint);
    let edge = match tree::restore(connection, *size) {
        Ok(edge) => edge,
        Err(error) => return Ok(Err(Located::nowhere(tile_problem(error)?))),
    };
    let tiles = Tiled::new(&edge, |id| read_tile(connection, id).map(std::sync::Arc::new));
    let Ok(way) = merkle::inclusion_proof(&tiles, seq, *size) else {
        return Ok(Err(Located::at(seq, Problem::Rewritten { size: *size })));
    };
    let holds = merkle::verify_inclusion(&leaf_hash(hash), seq, *size, &way, root);
    Ok(holds.map_err(|_elsewhere| Located::at(seq, Problem::NotInTree)))
}

/// The segment of which something is remembered, as it is at one moment, and its size.
fn opened(
    layout: &Layout,
    promised: &Promised,
) -> Result<Result<(Held, u64), Located>, LedgerError> {
    let reading = LedgerError::database;
    // One transaction: what is counted, read and proved is of one moment.
    let held = Held::open(&layout.segment(promised.segment))?;
    if let Some(problem) = store::schema_problem(&held.connection).map_err(reading("reading"))? {
        return Err(LedgerError::Damaged(problem));
    }
    let named = checkpoint_origin(&segment::first_kernel(&held.connection)?, promised.segment);
    if named != promised.checkpoint.origin {
        let text = "it is another ledger than the remembered one".to_owned();
        return Ok(Err(Located::nowhere(Problem::Protocol(text))));
    }
    let size = store::size(&held.connection).map_err(reading("counting entries"))?;
    Ok(Ok((held, size)))
}

/// One entry under the signed root.
fn signed_one(
    held: &Held,
    promised: &Promised,
    size: u64,
    seq: u64,
    found: impl FnOnce(&ReadEntry<'_>),
) -> Result<Result<Option<Proved>, Located>, LedgerError> {
    let proved = Some(promised.proved(size));
    match held.archived(seq) {
        Err(LedgerError::Gone { .. }) => return Ok(Ok(None)),
        Err(error) => return Err(error),
        Ok(Some(line)) => {
            let placed = placed(held, promised, seq, &line.entry_hash)?;
            return Ok(placed.and_then(|()| hand_line(&line, found)).map(|()| proved));
        }
        Ok(None) => {}
    }
    let reading = LedgerError::database;
    let sql = format!("SELECT {ENTRY_COLUMNS}, input FROM entries WHERE seq = ?1");
    let mut statement = held.connection.prepare_cached(&sql).map_err(reading("reading"))?;
    let mut rows = statement.query([key(seq)]).map_err(reading("reading"))?;
    let Some(row) = rows.next().map_err(reading("reading"))? else {
        return Ok(Err(Located::at(seq, Problem::Missing { until: seq.saturating_add(1) })));
    };
    let prev = store::hash_before(&held.connection, seq)?;
    let link = Link::from_row(row)?;
    let checked = match Checked::of(link, row, &prev, &mut Vec::new())? {
        Ok(checked) => checked,
        Err(problem) => return Ok(Err(Located::at(seq, problem))),
    };
    let placed = placed(held, promised, seq, &link.entry_hash)?;
    Ok(placed.map(|()| {
        found(&checked.handed_out());
        proved
    }))
}

/// What is remembered of the newest segment.
struct Promised {
    segment: u32,
    checkpoint: Checkpoint,
}

impl Promised {
    fn proved(&self, size: u64) -> Proved {
        let Checkpoint { size: signed, root, .. } = &self.checkpoint;
        Proved { segment: self.segment, size, signed: *signed, root: *root, gone_to: 0 }
    }
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
    held: &'a Held,
    segment: u32,
    edge: Frontier,
    end: u64,
    promised: Checkpoint,
    gone_to: u64,
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
        let Self { segment, promised: Checkpoint { root, .. }, gone_to, .. } = self;
        Ok(worst.map_or(Ok(Proved { segment, size, signed, root, gone_to }), Err))
    }

    fn read(
        &mut self,
        first: u64,
        found: &mut impl FnMut(&ReadEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), LedgerError> {
        let mut gathers = true;
        let mut hand = |entry: &ReadEntry<'_>| {
            if gathers && entry.seq >= first {
                gathers = found(entry).is_continue();
            }
        };
        for part in self.held.parts(self.end) {
            let whole = match part {
                Part::Rows(rows) => self.rows(rows, &mut hand)?,
                Part::Archived(file) if file.name.last < self.edge.size() => true,
                Part::Archived(file) => self.archived(&file, &mut hand)?,
                Part::Gone(range) => self.gone(range)?,
            };
            if !whole {
                return Ok(());
            }
        }
        if self.edge.size() < self.end {
            let missing = Problem::Missing { until: self.end };
            self.found.push(Located::at(self.edge.size(), missing));
        }
        Ok(())
    }

    /// Reads rows of the database; `false` where there is no going on.
    fn rows(
        &mut self,
        range: Range<u64>,
        hand: &mut impl FnMut(&ReadEntry<'_>),
    ) -> Result<bool, LedgerError> {
        let (from, to) = (range.start.max(self.edge.size()), range.end.min(self.end));
        if from >= to {
            return Ok(true);
        }
        let reading = LedgerError::database;
        let sql = format!(
            "SELECT {ENTRY_COLUMNS}, input FROM entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq"
        );
        let mut statement = self.connection.prepare(&sql).map_err(reading("reading"))?;
        let mut prev = store::hash_before(self.connection, from)?;
        let mut rows = statement.query([key(from), key(to)]).map_err(reading("reading"))?;
        let mut scratch = Vec::new();
        while let Some(row) = rows.next().map_err(reading("reading"))? {
            let seq = self.edge.size();
            // The tile is read to its end, because it tells which entry it was.
            if !self.found.is_empty() && seq.is_multiple_of(TILE_WIDTH) {
                return Ok(false);
            }
            let link = Link::from_row(row)?;
            if link.seq != seq {
                self.found.push(Located::at(seq, Problem::Missing { until: link.seq }));
                return Ok(false);
            }
            match Checked::of(link, row, &prev, &mut scratch) {
                Err(RowError::Kind(column)) => {
                    let text = RowError::Kind(column).to_string();
                    self.found.push(Located::at(seq, Problem::Database(text)));
                }
                Err(error) => return Err(error.into()),
                Ok(Err(problem)) => self.found.push(Located::at(seq, problem)),
                Ok(Ok(checked)) if self.found.is_empty() => hand(&checked.handed_out()),
                Ok(Ok(_)) => {}
            }
            prev = link.entry_hash;
            self.place(leaf_hash(&link.entry_hash))?;
        }
        Ok(true)
    }

    /// Reads an archive, or what of it is wanted; `false` where there is no going on.
    fn archived(
        &mut self,
        file: &ArchiveFile,
        hand: &mut impl FnMut(&ReadEntry<'_>),
    ) -> Result<bool, LedgerError> {
        let mut go_on = true;
        let held = self.held;
        let read = held.lines(file, &mut |line| {
            if line.ledger_seq < self.edge.size() {
                return Ok(true);
            }
            if line.ledger_seq >= self.end {
                return Ok(false);
            }
            match Checked::of_line(line) {
                Ok(checked) if self.found.is_empty() => hand(&checked.handed_out()),
                Ok(_) => {}
                Err(problem) => self.found.push(Located::at(line.ledger_seq, problem)),
            }
            self.place(leaf_hash(&line.entry_hash))?;
            go_on = self.found.is_empty();
            Ok(go_on)
        });
        match read {
            Ok(_) => Ok(go_on),
            Err(LedgerError::Archive { file, line, problem }) => {
                let problem = Problem::Archive { file, line, problem };
                self.found.push(Located::at(self.edge.size(), problem));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Passes over what retention deleted: the leaves are still in the tiles.
    fn gone(&mut self, range: Range<u64>) -> Result<bool, LedgerError> {
        // Retention deletes the oldest: what is missing after what is held, somebody else took away.
        if range.start > 1 {
            let problem = Problem::ArchivesMissing { last: range.end.saturating_sub(1) };
            self.found.push(Located::at(range.start, problem));
            return Ok(false);
        }
        let mut leaves = Leaves::new(self.connection);
        for seq in range.start.max(self.edge.size())..range.end.min(self.end) {
            match leaves.leaf(seq) {
                Ok(leaf) => self.place(leaf)?,
                Err(error) => {
                    self.found.push(Located::at(seq, tile_problem(error)?));
                    return Ok(false);
                }
            }
            self.gone_to = seq.saturating_add(1);
        }
        Ok(self.found.is_empty())
    }

    /// Gives an entry its place in the tree, and compares the tiles that it completes.
    fn place(&mut self, leaf: Digest) -> Result<(), LedgerError> {
        let mut tiles = Vec::new();
        self.edge.push(leaf, &mut tiles);
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
    prev: Digest,
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
        Ok(Ok(Self { entry, prev: *prev, detail, salted }))
    }

    /// The same of a line of an archive, whose hashes were checked when it was read.
    fn of_line(line: &'a Line) -> Result<Self, Problem> {
        let entry = line.stored();
        let detail = DetailView::parse(entry.detail)
            .map_err(|error| Problem::Format(format!("its detail: {error}")))?;
        Ok(Self { entry, prev: line.prev_hash, detail, salted: line.salted() })
    }

    fn handed_out(self) -> ReadEntry<'a> {
        let StoredEntry { seq, entry_hash, columns, detail: detail_bytes } = self.entry;
        ReadEntry {
            seq,
            entry_hash,
            ts_ms: columns.ts_ms,
            request_id: columns.request_id,
            actor: columns.actor,
            decision: columns.decision,
            tool_name: columns.tool_name,
            intent: columns.intent,
            error: columns.error,
            detail: self.detail,
            detail_bytes,
            salted: self.salted,
            columns,
            prev: self.prev,
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
