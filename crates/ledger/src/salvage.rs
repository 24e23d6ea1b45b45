//! What can still be proved of a damaged segment.

use std::path::{Path, PathBuf};

use fluffy_base::{Digest, KernelId};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::merkle::{Frontier, leaf_hash};
use crate::recovery::origin_parts;
use crate::store::{self, ENTRY_COLUMNS, INPUT_COLUMN, INSERT_ENTRY, RowError, StoredEntry, key};
use crate::tree::TileError;
use crate::trim::{Leaves, Trim};
use crate::verify::named_input;
use crate::{DetailView, Layout, LedgerError, files};

/// Rows are copied in transactions of this many entries.
const BATCH: u64 = 10_000;

/// A source and how far it can be believed.
#[derive(Debug)]
pub(crate) struct Salvage {
    pub(crate) from: PathBuf,
    pub(crate) size: u64,
    /// How many of the entries' inputs are there: of two sources that go equally far, the one with
    /// more of them is better.
    inputs: u64,
    /// Root of the tree over what can be believed.
    pub(crate) root: Digest,
    pub(crate) source: Source,
    pub(crate) kernel_id: Option<KernelId>,
}

/// Where salvaged entries came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The damaged file itself.
    File,
    /// A snapshot of it.
    Snapshot,
    /// Nothing could be salvaged.
    Nowhere,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Snapshot => "snapshot",
            Self::Nowhere => "nowhere",
        }
    }
}

/// The source that can be believed furthest, if any can.
pub(crate) fn best(
    layout: &Layout,
    segment: u32,
    promised: Option<&Checkpoint>,
) -> Result<Option<Salvage>, LedgerError> {
    let damaged = layout.damaged_of(segment)?.into_iter().map(|path| (path, Source::File));
    let snapshots = layout.snapshots(segment)?.into_iter().map(|path| (path, Source::Snapshot));
    let mut best: Option<Salvage> = None;
    for (from, source) in damaged.chain(snapshots) {
        let prefix = believable(&from, promised);
        let reach = (prefix.size, prefix.inputs);
        if reach > best.as_ref().map_or((0, 0), |best| (best.size, best.inputs)) {
            let (size, inputs, root) = (prefix.size, prefix.inputs, prefix.edge.root());
            best = Some(Salvage { from, size, inputs, root, source, kernel_id: prefix.kernel_id });
        }
    }
    Ok(best)
}

/// Copies what can be believed into a fresh file and puts it in the segment's place.
pub(crate) fn write(salvage: &Salvage, to: &Path) -> Result<(), LedgerError> {
    let mut unfinished = to.to_owned();
    unfinished.set_extension("salvage");
    drop(files::private(&unfinished).map_err(LedgerError::file("make", &unfinished))?);
    let source = store::open_reader(&salvage.from)?;
    let target = store::open_writer(&unfinished)?;
    store::create_schema(&target)?;
    copy(&source, &target, salvage.size)?;
    target
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;")
        .map_err(LedgerError::database("closing the salvaged ledger"))?;
    target
        .close()
        .map_err(|(_, error)| LedgerError::database("closing the salvaged ledger")(error))?;
    files::rename(&unfinished, to)?;
    files::sync_parent(to)
}

/// How many entries from the first are intact and, as far as they were signed, the signed ones.
fn believable(path: &Path, promised: Option<&Checkpoint>) -> Prefix {
    let Ok(connection) = store::open_reader(path) else { return Prefix::default() };
    let mut prefix = Prefix::default();
    // An error ends the prefix as a wrong hash does: what came before it stands.
    let _ = prefix.read(&connection, promised.map(|promised| promised.size));
    let signed = promised.is_none_or(|promised| {
        let reached = promised.size <= prefix.size;
        let same = !reached || prefix.root == Some(promised.root);
        let named = origin_parts(&promised.origin).map(|(kernel, _)| kernel);
        same && named.is_some() && named == prefix.kernel_id.as_ref().map(KernelId::as_str)
    });
    if signed { prefix } else { Prefix::default() }
}

#[derive(Default)]
struct Prefix {
    size: u64,
    inputs: u64,
    edge: Frontier,
    /// The root at the promised size.
    root: Option<Digest>,
    kernel_id: Option<KernelId>,
}

impl Prefix {
    fn read(&mut self, connection: &Connection, promised: Option<u64>) -> Result<(), RowError> {
        let mut statement =
            connection.prepare(&format!("SELECT {ENTRY_COLUMNS} FROM entries ORDER BY seq"))?;
        let mut rows = statement.query([])?;
        let (mut prev, mut scratch, mut tiles) = (Digest::GENESIS, Vec::new(), Vec::new());
        if promised == Some(0) {
            self.root = Some(self.edge.root());
        }
        while let Some(row) = rows.next()? {
            let entry = StoredEntry::from_row(row)?;
            if self.size == 1
                && entry.seq > 1
                && let Some(trim) = Trim::of(connection)?.filter(|trim| trim.to == entry.seq)
            {
                prev = self.pass_over(connection, &trim)?;
            }
            let intact = entry.seq == self.size
                && entry.view().hash(&prev, &mut scratch) == entry.entry_hash;
            if !intact {
                return Ok(());
            }
            self.inputs += u64::from(input(connection, entry.seq, entry.detail).is_some());
            if self.size == 0 {
                self.kernel_id = DetailView::kernel_in(entry.detail);
            }
            prev = entry.entry_hash;
            self.edge.push(leaf_hash(&prev), &mut tiles);
            tiles.clear();
            self.size += 1;
            if promised == Some(self.size) {
                self.root = Some(self.edge.root());
            }
        }
        Ok(())
    }

    /// Goes on after what has left, by the leaves in the tiles; the promised root holds them, too.
    fn pass_over(&mut self, connection: &Connection, trim: &Trim) -> Result<Digest, RowError> {
        let (mut leaves, mut tiles) = (Leaves::new(connection), Vec::new());
        let mut edge = self.edge.clone();
        for seq in self.size..trim.to {
            match leaves.leaf(seq) {
                Ok(leaf) => edge.push(leaf, &mut tiles),
                Err(TileError::Row(error)) => return Err(error),
                Err(_) => return Ok(Digest::GENESIS),
            }
            tiles.clear();
        }
        (self.edge, self.size) = (edge, trim.to);
        Ok(trim.prev)
    }
}

/// Copies the first `size` entries with their inputs, and makes the tree anew.
fn copy(source: &Connection, target: &Connection, size: u64) -> Result<(), LedgerError> {
    let copying = LedgerError::database;
    let mut edge = Frontier::default();
    let left = Trim::of(source)?.map_or(1..1, |trim| 1..trim.to);
    let mut leaves = Leaves::new(source);
    let mut start = 0;
    while start < size {
        let end = size.min(start + BATCH);
        target.execute_batch("BEGIN").map_err(copying("salvaging"))?;
        for seq in start..end {
            if !left.contains(&seq) {
                copy_entry(source, target, seq)?;
            }
            let leaf = match left.contains(&seq) {
                true => leaves.leaf(seq).map_err(|e| LedgerError::Damaged(e.to_string()))?,
                false => leaf_hash(&store::entry_hash(target, seq)?),
            };
            place(target, leaf, &mut edge)?;
        }
        target.execute_batch("COMMIT").map_err(copying("salvaging"))?;
        start = end;
    }
    Ok(())
}

fn copy_entry(source: &Connection, target: &Connection, seq: u64) -> Result<(), LedgerError> {
    let salvaging = LedgerError::database;
    let mut read = source
        .prepare_cached(&format!("SELECT {ENTRY_COLUMNS} FROM entries WHERE seq = ?1"))
        .map_err(salvaging("salvaging"))?;
    let mut values: Vec<rusqlite::types::Value> = read
        .query_row([key(seq)], |row| (0..INPUT_COLUMN).map(|column| row.get(column)).collect())
        .map_err(salvaging("salvaging"))?;
    let detail = match values.last() {
        Some(rusqlite::types::Value::Blob(detail)) => detail.as_slice(),
        _ => &[],
    };
    // An input that is not the one is lost; its entry still names its hash, and says so.
    values.push(input(source, seq, detail).into());
    target
        .prepare_cached(INSERT_ENTRY)
        .and_then(|mut insert| insert.execute(rusqlite::params_from_iter(values)))
        .map(drop)
        .map_err(salvaging("salvaging"))
}

/// Gives a leaf its place in the tree that is made anew.
fn place(target: &Connection, leaf: Digest, edge: &mut Frontier) -> Result<(), LedgerError> {
    let mut tiles = Vec::new();
    edge.push(leaf, &mut tiles);
    tiles
        .iter()
        .try_for_each(|tile| store::insert_tile(target, tile))
        .map_err(LedgerError::database("salvaging"))
}

/// The input that an entry's detail names, if it is there and intact. It is read by itself: where only
/// its pages are damaged, the entry is not lost with it.
fn input(connection: &Connection, seq: u64, detail: &[u8]) -> Option<Vec<u8>> {
    let named = named_input(detail)?;
    let kept = store::read_blob(connection, seq).ok().flatten()?;
    (kept.hash().hex() == named).then(|| kept.into_salted())
}
