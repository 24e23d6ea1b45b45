//! What has left the database: entries that are in an archive and older than the time they are kept.
//!
//! Entry 0 stays, because it names the kernel and the key, and so do the tiles: the leaves of what has
//! left are read from them, so the tree, its root and its proofs are what they were.
//!
//! **Invariant.** Only an entry of the ledger says that others have left. A gap without one is damage.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use fluffy_base::Digest;
use rusqlite::{Connection, OptionalExtension as _};

use crate::merkle::{TILE_WIDTH, TileId, leaf_hash};
use crate::store::{self, RowError};
use crate::tree::{TileError, read_tile};
use crate::{DetailView, EventType, files};

/// Where the entry names the first number that stayed.
pub(crate) const TO: &str = "to";
/// Where it names the hash of the entry before.
pub(crate) const PREV_HASH: &str = "prev_hash";

/// Name of the file with the number of that entry.
pub(crate) const HINT: &str = "trimmed";
/// A number is short.
const HINT_LIMIT: u64 = 64;

/// The entries 1 to `to` (not itself) have left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) to: u64,
    /// Hash of the last that left.
    pub(crate) prev: Digest,
}

impl Trim {
    /// What has left a database, by its own record.
    pub(crate) fn of(connection: &Connection) -> Result<Option<Self>, RowError> {
        let Some(to) = first_row(connection)?.filter(|first| *first > 1) else { return Ok(None) };
        let wanted = |record: &Recorded| Self::parse(record).filter(|trim| trim.to == to);
        let recorded = match hinted(connection, wanted)? {
            Some(trim) => Some(trim),
            None => newest(connection, EventType::AuditTrimmed, wanted)?,
        };
        let Some(trim) = recorded else { return Ok(None) };
        let mut leaves = Leaves::new(connection);
        let anchored = match leaves.leaf(to - 1) {
            Ok(leaf) => leaf == leaf_hash(&trim.prev),
            Err(TileError::Row(error)) => return Err(error),
            Err(TileError::Missing(_) | TileError::Damaged(_)) => false,
        };
        Ok(anchored.then_some(trim))
    }

    /// Whether everything in `range` has left.
    pub(crate) fn covers(&self, range: Range<u64>) -> bool {
        range.start > 0 && range.end <= self.to
    }

    pub(crate) fn parse(record: &Recorded) -> Option<Self> {
        let to = record.metadata.get(TO)?.parse().ok()?;
        Some(Self { to, prev: record.metadata.get(PREV_HASH)?.parse().ok()? })
    }
}

/// The smallest number after 0.
pub(crate) fn first_row(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT min(seq) FROM entries WHERE seq > 0";
    let first: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(first.and_then(|first| u64::try_from(first).ok()))
}

/// An entry that the ledger wrote about itself.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) seq: u64,
    pub(crate) metadata: BTreeMap<String, String>,
}

impl Recorded {
    /// Reads a record of this event from a detail.
    pub(crate) fn of(event: EventType, detail: &DetailView<'_>) -> Option<Self> {
        let own = |(key, value): (&std::borrow::Cow<'_, str>, &std::borrow::Cow<'_, str>)| {
            (key.clone().into_owned(), value.clone().into_owned())
        };
        let metadata = detail.metadata.iter().map(own).collect();
        (detail.event == event.name()).then_some(Self { seq: detail.seq, metadata })
    }
}

/// The newest record of an event in the database that `wanted` takes.
///
/// The name of the request is looked at first, because it is read without the detail; anyone may
/// choose such a name, so the detail's event decides.
pub(crate) fn newest<T>(
    connection: &Connection,
    event: EventType,
    mut wanted: impl FnMut(&Recorded) -> Option<T>,
) -> Result<Option<T>, RowError> {
    let mut statement = connection.prepare_cached(
        "SELECT detail FROM entries WHERE request_id = ?1 AND actor = 'SYSTEM' \
         ORDER BY seq DESC",
    )?;
    let mut rows = statement.query([event.name().to_uppercase()])?;
    while let Some(row) = rows.next()? {
        let detail: Vec<u8> = row.get(0)?;
        let Ok(detail) = DetailView::parse(&detail) else { continue };
        if let Some(found) = Recorded::of(event, &detail).and_then(|record| wanted(&record)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The record that the hint beside the database names, if `wanted` takes it. Looking for it among all
/// entries would cost every query that much; a hint that is wrong costs the search, and nothing else.
fn hinted<T>(
    connection: &Connection,
    wanted: impl FnOnce(&Recorded) -> Option<T>,
) -> Result<Option<T>, RowError> {
    let dir = connection.path().and_then(|path| Path::new(path).parent()?.parent());
    let hint = dir.and_then(|dir| files::read_small(&dir.join(HINT), HINT_LIMIT).ok().flatten());
    let Some(seq) = hint.and_then(|hint| hint.trim().parse().ok()) else { return Ok(None) };
    let mut statement = connection.prepare_cached("SELECT detail FROM entries WHERE seq = ?1")?;
    let detail: Option<Vec<u8>> =
        statement.query_row([store::key(seq)], |row| row.get(0)).optional()?;
    let view = detail.as_deref().and_then(|detail| DetailView::parse(detail).ok());
    let record = view.and_then(|view| Recorded::of(EventType::AuditTrimmed, &view));
    Ok(record.and_then(|record| wanted(&record)))
}

/// Reads leaves of the tree from the tiles, one tile at a time.
#[derive(Debug)]
pub(crate) struct Leaves<'a> {
    connection: &'a Connection,
    tile: Option<crate::merkle::Tile>,
}

impl<'a> Leaves<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self { connection, tile: None }
    }

    /// The leaf of an entry that stands under a complete tile.
    pub(crate) fn leaf(&mut self, seq: u64) -> Result<Digest, TileError> {
        let id = TileId { level: 0, index: seq / TILE_WIDTH };
        if self.tile.as_ref().is_none_or(|tile| tile.id() != id) {
            self.tile = Some(read_tile(self.connection, id)?);
        }
        let leaf = self.tile.as_ref().and_then(|tile| tile.node(0, seq % TILE_WIDTH));
        leaf.ok_or(TileError::Damaged(id))
    }

    /// Whether the tree has this hash at this place: by its tile, or by its row where the tile is not
    /// complete yet. `None` beyond the tree.
    pub(crate) fn agrees(&mut self, seq: u64, hash: &Digest) -> Result<Option<bool>, TileError> {
        match self.leaf(seq) {
            Ok(leaf) => Ok(Some(leaf == leaf_hash(hash))),
            Err(TileError::Missing(_)) => match store::entry_hash(self.connection, seq) {
                Ok(stored) => Ok(Some(stored == *hash)),
                Err(RowError::Database(rusqlite::Error::QueryReturnedNoRows)) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error),
        }
    }
}
