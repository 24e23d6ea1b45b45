//! What can still be proved of a damaged segment.

use std::path::{Path, PathBuf};

use fluffy_base::{Digest, KernelId};
use rusqlite::Connection;

use crate::checkpoint::Checkpoint;
use crate::merkle::{Frontier, leaf_hash};
use crate::store::{self, Blob, ENTRY_COLUMNS, RowError, StoredEntry, key, tile_key};
use crate::{DetailView, Layout, LedgerError, files};

/// Rows are copied in transactions of this many entries.
const BATCH: u64 = 10_000;

/// A source and how far it can be believed.
#[derive(Debug)]
pub(crate) struct Salvage {
    pub(crate) from: PathBuf,
    pub(crate) size: u64,
    pub(crate) source: &'static str,
    pub(crate) kernel_id: Option<KernelId>,
}

/// The source that can be believed furthest, if any can.
pub(crate) fn best(
    layout: &Layout,
    segment: u32,
    damaged: &Path,
    promised: Option<&Checkpoint>,
) -> Result<Option<Salvage>, LedgerError> {
    let mut sources = vec![(damaged.to_owned(), "file")];
    sources.extend(layout.snapshots(segment)?.into_iter().map(|path| (path, "snapshot")));
    let mut best: Option<Salvage> = None;
    for (from, source) in sources {
        let (size, kernel_id) = believable(&from, promised);
        if size > best.as_ref().map_or(0, |best| best.size) {
            best = Some(Salvage { from, size, source, kernel_id });
        }
    }
    Ok(best)
}

/// Copies what can be believed into a fresh file and puts it in the segment's place.
pub(crate) fn write(salvage: &Salvage, to: &Path) -> Result<(), LedgerError> {
    let mut unfinished = to.to_owned();
    unfinished.set_extension("salvage");
    drop(files::private(&unfinished).map_err(LedgerError::file("make", &unfinished))?);
    let source = store::open_writer(&salvage.from)?;
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
fn believable(path: &Path, promised: Option<&Checkpoint>) -> (u64, Option<KernelId>) {
    let Ok(connection) = store::open_writer(path) else { return (0, None) };
    let mut prefix = Prefix::default();
    // An error ends the prefix as a wrong hash does: what came before it stands.
    let _ = prefix.read(&connection, promised.map(|promised| promised.size));
    let signed = match promised {
        Some(promised) if promised.size <= prefix.size => prefix.root == Some(promised.root),
        _ => true,
    };
    if signed { (prefix.size, prefix.kernel_id) } else { (0, None) }
}

#[derive(Default)]
struct Prefix {
    size: u64,
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
            let intact = entry.seq == self.size
                && entry.view.hash(&prev, &mut scratch) == entry.entry_hash
                && Some(Digest::of(entry.detail)) == entry.view.evidence_hash;
            if !intact {
                return Ok(());
            }
            if self.size == 0 {
                let detail = DetailView::parse(entry.detail).ok();
                self.kernel_id = detail.and_then(|detail| KernelId::named(&detail.kernel_id));
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
}

/// Copies the first `size` entries with their inputs, and makes the tree anew.
fn copy(source: &Connection, target: &Connection, size: u64) -> Result<(), LedgerError> {
    let copying = LedgerError::database;
    let mut edge = Frontier::default();
    let mut start = 0;
    while start < size {
        let end = size.min(start + BATCH);
        target.execute_batch("BEGIN").map_err(copying("salvaging"))?;
        for seq in start..end {
            copy_entry(source, target, seq, &mut edge)?;
        }
        target.execute_batch("COMMIT").map_err(copying("salvaging"))?;
        start = end;
    }
    Ok(())
}

fn copy_entry(
    source: &Connection,
    target: &Connection,
    seq: u64,
    edge: &mut Frontier,
) -> Result<(), LedgerError> {
    let salvaging = LedgerError::database;
    let mut read = source
        .prepare_cached(&format!("SELECT {ENTRY_COLUMNS} FROM entries WHERE seq = ?1"))
        .map_err(salvaging("salvaging"))?;
    let mut insert = target
        .prepare_cached(
            "INSERT INTO entries VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
        )
        .map_err(salvaging("salvaging"))?;
    let values: Vec<rusqlite::types::Value> = read
        .query_row([key(seq)], |row| (0..14).map(|column| row.get(column)).collect())
        .map_err(salvaging("salvaging"))?;
    insert.execute(rusqlite::params_from_iter(values)).map_err(salvaging("salvaging"))?;
    // An input that cannot be read is lost; its entry still names its hash, and says so.
    if let Ok(Some(blob)) = read_blob(source, seq) {
        target
            .execute(
                "INSERT INTO blobs VALUES (?1, ?2, ?3)",
                rusqlite::params![key(seq), blob.salt, blob.bytes],
            )
            .map_err(salvaging("salvaging"))?;
    }
    let mut tiles = Vec::new();
    edge.push(leaf_hash(&store::entry_hash(target, seq)?), &mut tiles);
    for tile in tiles {
        target
            .execute(
                "INSERT INTO tiles VALUES (?1, ?2)",
                rusqlite::params![tile_key(tile.id()), tile.as_bytes()],
            )
            .map_err(salvaging("salvaging"))?;
    }
    Ok(())
}

/// The private input of an entry, if it has one.
pub(crate) fn read_blob(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Blob>> {
    use rusqlite::OptionalExtension as _;
    connection
        .prepare_cached("SELECT salt, bytes FROM blobs WHERE seq = ?1")?
        .query_row([key(seq)], |row| Ok(Blob { salt: row.get(0)?, bytes: row.get(1)? }))
        .optional()
}
