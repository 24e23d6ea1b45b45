//! The Merkle tree as it is stored: complete tiles in the database, recent ones in memory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fluffy_base::Digest;
use rusqlite::{Connection, OptionalExtension as _};

use crate::LedgerError;
use crate::merkle::{self, Frontier, Pending, Tile, TileId, Tiled, TreeError, leaf_hash};
use crate::store::{self, RowError, tile_key};

/// How many tiles above the lowest level are remembered in each of two generations: 16 MiB at most,
/// and enough for all of a ledger of four million entries. The lowest level is read as it is needed:
/// there are 32 times as many, and two proofs seldom want the same one.
const GENERATION: usize = 4096;

/// Reads the tree of one segment.
#[derive(Debug)]
pub(crate) struct Tree {
    connection: Connection,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    young: HashMap<TileId, Arc<Tile>>,
    old: HashMap<TileId, Arc<Tile>>,
}

/// Why a stored tile cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TileError {
    #[error("tile {} of level {} is missing", .0.index, .0.level)]
    Missing(TileId),
    #[error("tile {} of level {} is damaged", .0.index, .0.level)]
    Damaged(TileId),
    #[error(transparent)]
    Row(#[from] RowError),
}

impl From<rusqlite::Error> for TileError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Row(error.into())
    }
}

impl Tree {
    /// Opens the tree for one look at it: all reads are of one moment, and none of them has to take
    /// the database's locks again.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let connection = store::open_reader(path)?;
        connection.execute_batch("BEGIN").map_err(LedgerError::database("reading"))?;
        Ok(Self { connection, cache: Mutex::default() })
    }

    /// The root the tree had at `size`.
    pub(crate) fn root_at(
        &self,
        edge: &Frontier,
        size: u64,
    ) -> Result<Digest, TreeError<TileError>> {
        merkle::root_at(&Tiled::new(edge, |id| self.tile(id)), size)
    }

    pub(crate) fn inclusion(
        &self,
        edge: &Frontier,
        index: u64,
    ) -> Result<Vec<Digest>, TreeError<TileError>> {
        merkle::inclusion_proof(&Tiled::new(edge, |id| self.tile(id)), index, edge.size())
    }

    pub(crate) fn consistency(
        &self,
        edge: &Frontier,
        old: u64,
    ) -> Result<Vec<Digest>, TreeError<TileError>> {
        merkle::consistency_proof(&Tiled::new(edge, |id| self.tile(id)), old, edge.size())
    }

    /// The stored hash of an entry.
    pub(crate) fn entry_hash(&self, seq: u64) -> Result<Digest, RowError> {
        store::entry_hash(&self.connection, seq)
    }

    fn tile(&self, id: TileId) -> Result<Arc<Tile>, TileError> {
        if id.level == 0 {
            return Ok(Arc::new(read_tile(&self.connection, id)?));
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tile) = cache.get(id) {
            return Ok(tile);
        }
        let tile = Arc::new(read_tile(&self.connection, id)?);
        cache.put(&tile);
        Ok(tile)
    }
}

impl Cache {
    fn get(&mut self, id: TileId) -> Option<Arc<Tile>> {
        if let Some(tile) = self.young.get(&id) {
            return Some(Arc::clone(tile));
        }
        let tile = self.old.remove(&id)?;
        self.put(&tile);
        Some(tile)
    }

    fn put(&mut self, tile: &Arc<Tile>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(tile.id(), Arc::clone(tile));
    }
}

/// Reads one complete tile.
pub(crate) fn read_tile(connection: &Connection, id: TileId) -> Result<Tile, TileError> {
    let mut statement = connection.prepare_cached("SELECT hashes FROM tiles WHERE id = ?1")?;
    let tile = statement
        .query_row([tile_key(id)], |row| {
            let bytes = row.get_ref(0)?.as_blob()?;
            Ok(Tile::from_bytes(id, bytes).map_err(|_| TileError::Damaged(id)))
        })
        .optional()?;
    tile.unwrap_or(Err(TileError::Missing(id)))
}

/// The right edge of the stored tree, from the last few entries and tiles.
pub(crate) fn restore(connection: &Connection, size: u64) -> Result<Frontier, TileError> {
    let mut levels = Vec::new();
    for Pending { level, nodes } in merkle::pending(size) {
        let mut hashes = Vec::new();
        for index in nodes {
            hashes.push(match level.checked_sub(1) {
                None => leaf_hash(&store::entry_hash(connection, index)?),
                Some(level) => read_tile(connection, TileId { level, index })?.root(),
            });
        }
        levels.push(hashes);
    }
    // `levels` was made from `pending`, so the counts agree; a size beyond the store's range has no
    // rows and failed above.
    Frontier::restore(size, &levels)
        .map_err(|_| TileError::Missing(TileId { level: 0, index: size }))
}
