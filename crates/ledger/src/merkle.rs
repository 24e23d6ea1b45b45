//! The Merkle tree over the entries of a chain: RFC 6962 over SHA-256.
//!
//! The data of a leaf is the 32 bytes of an entry's hash. Hashes are kept in *tiles* of height 5: a
//! complete [`Tile`] stands on 32 neighbouring nodes and holds all 63 hashes up to its own root.
//! Tiles of level 0 stand on leaf hashes, tiles of the next level on the roots of those below. What
//! is not yet a complete tile is in the [`Frontier`], the right edge of the tree. [`Tiled`] joins
//! both into [`Nodes`], from which [`root_at`], [`inclusion_proof`] and [`consistency_proof`] read;
//! none of them hashes what is already kept.
//!
//! [`verify_inclusion`] and [`verify_consistency`] are for whoever has a proof and no tree. They
//! share nothing with the code that makes proofs except [`node_hash`].
//!
//! **Invariant.** A complete tile never changes: appending only adds tiles.
//!
//! **Invariant.** No size, index or proof makes anything here panic or loop: every walk ends after
//! at most 64 steps.
//!
//! A proof binds a leaf to a root, not to a size: some neighbouring sizes give a leaf a way of the
//! same shape. The size is to be trusted only together with the root, from a signed checkpoint.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, Range};

use fluffy_base::Digest;

/// How many levels of the tree a tile spans.
pub(crate) const TILE_HEIGHT: u32 = 5;

/// How many nodes a tile stands on.
pub(crate) const TILE_WIDTH: u64 = 1 << TILE_HEIGHT;

/// The length of a tile's bytes: 63 hashes.
pub(crate) const TILE_BYTES: usize = TILE_NODES * 32;

const TILE_NODES: usize = (2 << TILE_HEIGHT) - 1;

/// The largest tree that can be restored: what the store can count.
const MAX_SIZE: u64 = i64::MAX.unsigned_abs();

/// The hash of a leaf with the hash of an entry as its data.
pub fn leaf_hash(entry: &Digest) -> Digest {
    let mut input = [0x00; 33];
    input[1..].copy_from_slice(entry.as_bytes());
    Digest::of(&input)
}

/// The hashes of many leaves.
pub(crate) fn leaf_hashes(entries: &[Digest]) -> Vec<Digest> {
    let input = |entry: &Digest| {
        let mut input = [0x00; 33];
        input[1..].copy_from_slice(entry.as_bytes());
        input
    };
    let inputs: Vec<_> = entries.iter().map(input).collect();
    Digest::of_each(&inputs.iter().map(<[u8; 33]>::as_slice).collect::<Vec<_>>())
}

/// The hash of the node over two others.
pub(crate) fn node_hash(left: &Digest, right: &Digest) -> Digest {
    Digest::of(&node_input(left.as_bytes(), right.as_bytes()))
}

fn node_input(left: &[u8; 32], right: &[u8; 32]) -> [u8; 65] {
    let mut input = [0x01; 65];
    input[1..33].copy_from_slice(left);
    input[33..].copy_from_slice(right);
    input
}

/// The root of the tree without leaves.
pub(crate) fn empty_root() -> Digest {
    Digest::of(b"")
}

/// Names a tile: the `index`-th from the left of its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TileId {
    /// 0 for tiles that stand on leaf hashes.
    pub(crate) level: u8,
    /// Counted from the left, from 0.
    pub(crate) index: u64,
}

/// All hashes over 32 neighbouring nodes: 32, 16, 8, 4, 2 and 1, each row from left to right.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tile {
    id: TileId,
    rows: Rows,
}

/// The length of what was kept is not that of a tile.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a tile has {TILE_BYTES} bytes, not {0}")]
pub(crate) struct TileLength(pub(crate) usize);

impl Tile {
    /// The tile from its kept bytes. They are taken as they are:
    /// verification compares them with a tile made anew.
    pub(crate) fn from_bytes(id: TileId, bytes: &[u8]) -> Result<Self, TileLength> {
        let (hashes, rest) = bytes.as_chunks::<32>();
        match <[[u8; 32]; TILE_NODES]>::try_from(hashes) {
            Ok(hashes) if rest.is_empty() => Ok(Self { id, rows: Rows(Box::new(hashes)) }),
            _ => Err(TileLength(bytes.len())),
        }
    }

    /// The tile's place in the tree.
    pub(crate) fn id(&self) -> TileId {
        self.id
    }

    /// The bytes to keep, [`TILE_BYTES`] of them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.rows.0.as_flattened()
    }

    /// The hash over the whole tile: one of the nodes on which the next level stands.
    pub(crate) fn root(&self) -> Digest {
        let [.., root] = *self.rows.0;
        Digest::from_bytes(root)
    }

    /// The hash `height` rows above the lowest, `offset` from the left; `None` outside the tile.
    pub(crate) fn node(&self, height: u32, offset: u64) -> Option<Digest> {
        self.rows.get(height, offset)
    }

    /// Whether the upper rows are those that follow from the lowest.
    #[cfg(test)]
    pub(crate) fn is_consistent(&self) -> bool {
        let mut edge = Edge::default();
        for offset in 0..TILE_WIDTH {
            let Some(node) = self.node(0, offset) else {
                return false;
            };
            edge.push(node);
        }
        edge.rows == self.rows
    }
}

impl fmt::Debug for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tile").field("id", &self.id).field("root", &self.root()).finish()
    }
}

/// The rows of a tile one after another, from the lowest.
#[derive(Clone, PartialEq, Eq)]
struct Rows(Box<[[u8; 32]; TILE_NODES]>);

impl Rows {
    /// All rows over a whole lowest one, each hashed at once.
    fn over(nodes: &[Digest; TILE_WIDTH as usize]) -> Self {
        let mut rows = Self(Box::new([[0; 32]; TILE_NODES]));
        let mut row = nodes.to_vec();
        for height in 0..=TILE_HEIGHT {
            for (offset, hash) in (0..).zip(&row) {
                rows.set(height, offset, *hash);
            }
            let pairs = row.as_chunks().0.iter();
            let inputs: Vec<_> =
                pairs.map(|[left, right]| node_input(left.as_bytes(), right.as_bytes())).collect();
            row = Digest::of_each(&inputs.iter().map(<[u8; 65]>::as_slice).collect::<Vec<_>>());
        }
        rows
    }

    fn get(&self, height: u32, offset: u64) -> Option<Digest> {
        self.0.get(slot(height, offset)?).copied().map(Digest::from_bytes)
    }

    fn set(&mut self, height: u32, offset: u64, hash: Digest) {
        if let Some(place) = slot(height, offset).and_then(|slot| self.0.get_mut(slot)) {
            *place = *hash.as_bytes();
        }
    }
}

fn slot(height: u32, offset: u64) -> Option<usize> {
    let width = TILE_WIDTH.checked_shr(height)?;
    let row = 2 * (TILE_WIDTH - width);
    if offset < width { usize::try_from(row + offset).ok() } else { None }
}

/// The tile of a level that is not complete yet.
#[derive(Clone)]
struct Edge {
    rows: Rows,
    /// How many nodes of the lowest row are there: less than 32 between pushes.
    filled: u64,
}

impl Default for Edge {
    fn default() -> Self {
        Self { rows: Rows(Box::new([[0; 32]; TILE_NODES])), filled: 0 }
    }
}

impl Edge {
    /// Adds a node to the lowest row, and above it every node that this completes.
    fn push(&mut self, node: Digest) {
        let (mut hash, mut height, mut offset) = (node, 0, self.filled);
        self.rows.set(height, offset, hash);
        while offset % 2 == 1
            && let Some(left) = self.rows.get(height, offset - 1)
        {
            hash = node_hash(&left, &hash);
            height += 1;
            offset /= 2;
            self.rows.set(height, offset, hash);
        }
        self.filled += 1;
    }

    fn node(&self, height: u32, offset: u64) -> Option<Digest> {
        if offset < self.filled >> height { self.rows.get(height, offset) } else { None }
    }

    /// The roots of the largest perfect subtrees that make up the edge, from right to left.
    fn peaks(&self) -> impl Iterator<Item = Digest> + '_ {
        (0..TILE_HEIGHT)
            .filter(|height| self.filled >> height & 1 == 1)
            .filter_map(|height| self.node(height, (self.filled >> height) - 1))
    }
}

/// The right edge of a tree: all that is needed to append to it and to know its root.
#[derive(Clone, Default)]
pub(crate) struct Frontier {
    size: u64,
    edges: Vec<Edge>,
}

/// The nodes of one level that stand in no complete tile of that level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The level of the tile that will stand on them.
    pub(crate) level: u8,
    /// On level 0 the numbers of leaves; above it, the indexes of the complete tiles of the level
    /// below whose roots are meant. Fewer than 32, and often none.
    pub(crate) nodes: Range<u64>,
}

/// Why a frontier cannot be made of the nodes that were given.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum RestoreError {
    /// The size is beyond what the store counts.
    #[error("a tree of {0} leaves is too large")]
    TooLarge(u64),
    /// The wrong number of levels for the size.
    #[error("the edge has {expected} levels, not {found}")]
    Levels {
        /// As many as the size demands.
        expected: usize,
        /// As many as were given.
        found: usize,
    },
    /// The wrong number of nodes on a level.
    #[error("level {level} of the edge has {expected} nodes, not {found}")]
    Nodes {
        /// The level in question.
        level: u8,
        /// As many as the size demands.
        expected: u64,
        /// As many as were given.
        found: usize,
    },
}

/// What a tree of `size` leaves has pending, level by level from the leaves: what
/// [`Frontier::restore`] has to be given.
pub(crate) fn pending(size: u64) -> Vec<Pending> {
    let mut levels = Vec::new();
    let mut nodes = size;
    for level in 0.. {
        if nodes == 0 {
            break;
        }
        levels.push(Pending { level, nodes: nodes - nodes % TILE_WIDTH..nodes });
        nodes /= TILE_WIDTH;
    }
    levels
}

impl Frontier {
    /// The edge of a tree of `size` leaves, from the hashes that [`pending`] names for each level.
    ///
    /// The hashes are believed: compare [`Frontier::root`] with a root from elsewhere.
    pub(crate) fn restore(size: u64, levels: &[Vec<Digest>]) -> Result<Self, RestoreError> {
        if size > MAX_SIZE {
            return Err(RestoreError::TooLarge(size));
        }
        let wanted = pending(size);
        if wanted.len() != levels.len() {
            return Err(RestoreError::Levels { expected: wanted.len(), found: levels.len() });
        }
        let mut edges = Vec::with_capacity(levels.len());
        for (Pending { level, nodes }, hashes) in wanted.into_iter().zip(levels) {
            let (expected, found) = (nodes.end - nodes.start, hashes.len());
            if u64::try_from(found) != Ok(expected) {
                return Err(RestoreError::Nodes { level, expected, found });
            }
            let mut edge = Edge::default();
            hashes.iter().for_each(|hash| edge.push(*hash));
            edges.push(edge);
        }
        Ok(Self { size, edges })
    }

    /// How many leaves the tree has.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Digest {
        let peaks = self.edges.iter().flat_map(Edge::peaks);
        peaks.reduce(|right, left| node_hash(&left, &right)).unwrap_or_else(empty_root)
    }

    /// The root of this tree with a smaller one, whose root is `right`, standing at its right end.
    ///
    /// This tree must consist of perfect subtrees at least as large as the other one.
    pub(crate) fn root_before(&self, right: Digest) -> Digest {
        let peaks = self.edges.iter().flat_map(Edge::peaks);
        peaks.fold(right, |right, left| node_hash(&left, &right))
    }

    /// Appends a leaf by its [`leaf_hash`]. Tiles that it completes are added to `completed`, the
    /// lowest level first; they have to be kept, because the frontier forgets them.
    pub(crate) fn push(&mut self, leaf: Digest, completed: &mut Vec<Tile>) {
        self.size += 1;
        self.place(0, leaf, completed);
    }

    /// Appends many leaves: the same as one after another, with the nodes of a whole tile hashed
    /// together.
    pub(crate) fn extend(&mut self, leaves: &[Digest], completed: &mut Vec<Tile>) {
        let mut rest = leaves;
        while let Some((leaf, others)) = rest.split_first() {
            match rest.split_first_chunk() {
                Some((whole, others)) if self.size.is_multiple_of(TILE_WIDTH) => {
                    let id = TileId { level: 0, index: self.size / TILE_WIDTH };
                    let tile = Tile { id, rows: Rows::over(whole) };
                    let root = tile.root();
                    completed.push(tile);
                    self.size += TILE_WIDTH;
                    if self.edges.is_empty() {
                        self.edges.push(Edge::default());
                    }
                    self.place(1, root, completed);
                    rest = others;
                }
                _ => {
                    self.push(*leaf, completed);
                    rest = others;
                }
            }
        }
    }

    /// Adds a node to a level that is there or the next one, and above it every tile that this
    /// completes.
    fn place(&mut self, level: u8, mut node: Digest, completed: &mut Vec<Tile>) {
        let mut tiles = self.size >> (TILE_HEIGHT * u32::from(level));
        for (level, edge) in (0..).zip(&mut self.edges).skip(usize::from(level)) {
            edge.push(node);
            if edge.filled < TILE_WIDTH {
                return;
            }
            tiles /= TILE_WIDTH;
            let id = TileId { level, index: tiles - 1 };
            let tile = Tile { id, rows: std::mem::take(edge).rows };
            node = tile.root();
            completed.push(tile);
        }
        let mut top = Edge::default();
        top.push(node);
        self.edges.push(top);
    }

    /// The hash of a perfect subtree (see [`Nodes::node`]) that stands in no complete tile; `None`
    /// if it stands in one, or reaches beyond the end of the tree.
    pub(crate) fn node(&self, height: u32, index: u64) -> Option<Digest> {
        let place = Place::of(height, index)?;
        if place.tile.index != self.complete(place.tile.level) {
            return None;
        }
        self.edges.get(usize::from(place.tile.level))?.node(place.height, place.offset)
    }

    /// How many tiles of a level are complete.
    fn complete(&self, level: u8) -> u64 {
        self.size.checked_shr(TILE_HEIGHT * (u32::from(level) + 1)).unwrap_or(0)
    }
}

impl fmt::Debug for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier").field("size", &self.size).field("root", &self.root()).finish()
    }
}

/// Where in the tiles a node of the tree stands. A node that is the root of one tile and stands under
/// another is looked up in the upper one.
struct Place {
    tile: TileId,
    height: u32,
    offset: u64,
}

impl Place {
    fn of(height: u32, index: u64) -> Option<Self> {
        let level = u8::try_from(height / TILE_HEIGHT).ok()?;
        let height = height % TILE_HEIGHT;
        let width = TILE_WIDTH >> height;
        Some(Self { tile: TileId { level, index: index / width }, height, offset: index % width })
    }
}

/// Why a tree cannot answer; `E` is the failure of what it is kept in.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum TreeError<E> {
    /// The kept tiles could not be read.
    #[error("the tree cannot be read")]
    Store(#[source] E),
    /// The subtree is not, or not all, within the tree.
    #[error("the tree has no node {index} at height {height}")]
    NoNode {
        /// The height of the subtree.
        height: u32,
        /// Its number from the left.
        index: u64,
    },
    /// A proof was asked for a leaf that the tree of that size does not have.
    #[error("a tree of {size} has no leaf {index}")]
    NoLeaf {
        /// The number of the leaf, from 0.
        index: u64,
        /// The size that was asked for.
        size: u64,
    },
    /// A proof was asked that a larger tree is the beginning of a smaller one.
    #[error("a tree of {new} cannot begin with a tree of {old}")]
    Shrinks {
        /// The size that should be the earlier.
        old: u64,
        /// The size that should be the later.
        new: u64,
    },
}

/// A tree that can be asked for the hashes of its perfect subtrees.
pub(crate) trait Nodes {
    /// The failure of what the tree is kept in.
    type Error;

    /// The hash over the leaves `index * 2^height .. (index + 1) * 2^height`. All of them must be in
    /// the tree, otherwise [`TreeError::NoNode`].
    fn node(&self, height: u32, index: u64) -> Result<Digest, TreeError<Self::Error>>;
}

/// A tree in two parts: complete tiles, which `fetch` brings from where they are kept, and the
/// frontier for the rest.
///
/// `fetch` is asked only for tiles that a tree of the frontier's size has completed. The tile that
/// was asked for last is held, so that a proof asks for each tile on its way once.
pub(crate) struct Tiled<'a, F, T> {
    frontier: &'a Frontier,
    fetch: F,
    held: Cell<Option<T>>,
}

impl<'a, F, T> Tiled<'a, F, T> {
    /// The tree with this frontier.
    pub(crate) fn new(frontier: &'a Frontier, fetch: F) -> Self {
        Self { frontier, fetch, held: Cell::new(None) }
    }
}

impl<F, T, E> Nodes for Tiled<'_, F, T>
where
    F: Fn(TileId) -> Result<T, E>,
    T: Deref<Target = Tile>,
{
    type Error = E;

    fn node(&self, height: u32, index: u64) -> Result<Digest, TreeError<E>> {
        let none = TreeError::NoNode { height, index };
        let Some(Place { tile: id, height: row, offset }) = Place::of(height, index) else {
            return Err(none);
        };
        if id.index >= self.frontier.complete(id.level) {
            return self.frontier.node(height, index).ok_or(none);
        }
        let tile = match self.held.take() {
            Some(held) if held.id() == id => held,
            _ => (self.fetch)(id).map_err(TreeError::Store)?,
        };
        let node = tile.node(row, offset);
        self.held.set(Some(tile));
        node.ok_or(none)
    }
}

/// The root that the tree had when it had `size` leaves.
pub(crate) fn root_at<N: Nodes>(nodes: &N, size: u64) -> Result<Digest, TreeError<N::Error>> {
    if size == 0 { Ok(empty_root()) } else { hash_between(nodes, 0, size) }
}

/// The proof that leaf `index` is in the tree of `size` leaves (RFC 6962, 2.1.1): the hashes beside
/// the way from the leaf to the root, from below. Only these are read, so that a size beyond the end
/// of the tree goes unnoticed when all of them are there.
pub(crate) fn inclusion_proof<N: Nodes>(
    nodes: &N,
    index: u64,
    size: u64,
) -> Result<Vec<Digest>, TreeError<N::Error>> {
    if index >= size {
        return Err(TreeError::NoLeaf { index, size });
    }
    let mut proof = Vec::with_capacity(longest_proof(size));
    push_siblings(nodes, 0, index, size, &mut proof)?;
    Ok(proof)
}

/// The proof that the tree of `new` leaves begins with the tree of `old` leaves (RFC 6962, 2.1.2).
/// Empty when there is nothing to prove: `old` is 0 or equals `new`.
pub(crate) fn consistency_proof<N: Nodes>(
    nodes: &N,
    old: u64,
    new: u64,
) -> Result<Vec<Digest>, TreeError<N::Error>> {
    if old > new {
        return Err(TreeError::Shrinks { old, new });
    }
    if old == 0 || old == new {
        return Ok(Vec::new());
    }
    let mut proof = Vec::with_capacity(longest_proof(new));
    // The largest subtree that ends where the old tree ends. If it is the whole old tree, its hash
    // is the old root, which the verifier has.
    let height = old.trailing_zeros();
    let index = (old >> height) - 1;
    if index > 0 {
        proof.push(nodes.node(height, index)?);
    }
    push_siblings(nodes, height, index, new, &mut proof)?;
    Ok(proof)
}

fn longest_proof(size: u64) -> usize {
    usize::try_from(u64::BITS - size.leading_zeros()).map_or(0, |levels| levels + 1)
}

/// The hashes beside the way from a node to the root of the tree of `size` leaves.
fn push_siblings<N: Nodes>(
    nodes: &N,
    mut height: u32,
    mut index: u64,
    size: u64,
    proof: &mut Vec<Digest>,
) -> Result<(), TreeError<N::Error>> {
    let mut last = size.saturating_sub(1) >> height;
    while last > 0 {
        let sibling = index ^ 1;
        if sibling < size >> height {
            proof.push(nodes.node(height, sibling)?);
        } else if sibling == last {
            proof.push(hash_between(nodes, sibling << height, size)?);
        }
        height += 1;
        index /= 2;
        last /= 2;
    }
    Ok(())
}

/// The hash over the leaves `start..end`, at least one. `start` is a multiple of a power of two that
/// is no less than their number.
fn hash_between<N: Nodes>(nodes: &N, start: u64, end: u64) -> Result<Digest, TreeError<N::Error>> {
    let mut rest = end - start;
    let peak = |rest: &mut u64| {
        let height = rest.trailing_zeros();
        *rest &= *rest - 1;
        nodes.node(height, (end >> height) - 1)
    };
    let mut hash = peak(&mut rest)?;
    while rest > 0 {
        hash = node_hash(&peak(&mut rest)?, &hash);
    }
    Ok(hash)
}

/// Why a proof does not show that a leaf is in a tree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InclusionError {
    /// A tree of that size has no such leaf.
    #[error("a tree of {size} has no leaf {index}")]
    NoLeaf {
        /// The number of the leaf, from 0.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The proof ends before the root is reached.
    #[error("the proof has too few hashes")]
    TooShort,
    /// The proof goes on after the root is reached.
    #[error("the proof has too many hashes")]
    TooLong,
    /// Leaf and proof lead to another root.
    #[error("the proof leads to another root")]
    OtherRoot,
}

/// Checks that `leaf`, a [`leaf_hash`], is number `index` in the tree of `size` leaves with `root`
/// (RFC 9162, 2.1.3.2).
pub fn verify_inclusion(
    leaf: &Digest,
    index: u64,
    size: u64,
    proof: &[Digest],
    root: &Digest,
) -> Result<(), InclusionError> {
    if index >= size {
        return Err(InclusionError::NoLeaf { index, size });
    }
    let mut way = Way { index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in proof {
        hash = match way.up().ok_or(InclusionError::TooLong)? {
            Side::Left => node_hash(sibling, &hash),
            Side::Right => node_hash(&hash, sibling),
        };
    }
    if way.last > 0 {
        return Err(InclusionError::TooShort);
    }
    if hash == *root { Ok(()) } else { Err(InclusionError::OtherRoot) }
}

/// Why a proof does not show that a tree begins with another.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConsistencyError {
    /// The tree that should be the later one is the smaller one.
    #[error("a tree of {new} cannot begin with a tree of {old}")]
    Shrinks {
        /// The size of the earlier tree.
        old: u64,
        /// The size of the later tree.
        new: u64,
    },
    /// The proof ends before the root is reached.
    #[error("the proof has too few hashes")]
    TooShort,
    /// The proof goes on after the root is reached, or there was nothing to prove.
    #[error("the proof has too many hashes")]
    TooLong,
    /// The earlier tree is not the one that the proof is about.
    #[error("the proof leads to another root of the earlier tree")]
    OtherOldRoot,
    /// The later tree is not the one that the proof is about.
    #[error("the proof leads to another root of the later tree")]
    OtherNewRoot,
}

/// Checks that the tree of `new_size` leaves with `new_root` begins with the tree of `old_size`
/// leaves with `old_root` (RFC 9162, 2.1.4.2).
///
/// Every tree begins with the empty one, whatever `new_root` is: from `old_size` 0 nothing follows.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Digest,
    new_size: u64,
    new_root: &Digest,
    proof: &[Digest],
) -> Result<(), ConsistencyError> {
    if old_size > new_size {
        return Err(ConsistencyError::Shrinks { old: old_size, new: new_size });
    }
    if old_size == 0 || old_size == new_size {
        return verify_nothing_to_prove(old_size, old_root, new_size, new_root, proof);
    }
    let (seed, siblings) = if old_size.is_power_of_two() {
        (old_root, proof)
    } else {
        proof.split_first().ok_or(ConsistencyError::TooShort)?
    };
    let height = old_size.trailing_zeros();
    let mut way = Way { index: (old_size - 1) >> height, last: (new_size - 1) >> height };
    let (mut old, mut new) = (*seed, *seed);
    for sibling in siblings {
        match way.up().ok_or(ConsistencyError::TooLong)? {
            Side::Left => {
                old = node_hash(sibling, &old);
                new = node_hash(sibling, &new);
            }
            Side::Right => new = node_hash(&new, sibling),
        }
    }
    if way.last > 0 {
        return Err(ConsistencyError::TooShort);
    }
    if old != *old_root {
        return Err(ConsistencyError::OtherOldRoot);
    }
    if new == *new_root { Ok(()) } else { Err(ConsistencyError::OtherNewRoot) }
}

fn verify_nothing_to_prove(
    old_size: u64,
    old_root: &Digest,
    new_size: u64,
    new_root: &Digest,
    proof: &[Digest],
) -> Result<(), ConsistencyError> {
    if !proof.is_empty() {
        return Err(ConsistencyError::TooLong);
    }
    if old_size == 0 && *old_root != empty_root() {
        return Err(ConsistencyError::OtherOldRoot);
    }
    if old_size == new_size && old_root != new_root {
        return Err(ConsistencyError::OtherNewRoot);
    }
    Ok(())
}

/// On which side of the way a sibling stands.
enum Side {
    Left,
    Right,
}

/// The way from a node up to the root, knowing only where the tree ends: `fn` and `sn` in RFC 9162.
struct Way {
    index: u64,
    last: u64,
}

impl Way {
    /// Goes up past the next sibling; `None` at the root.
    fn up(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        let side = if self.index % 2 == 1 || self.index == self.last {
            // Where the last node of a level has no sibling, it stands for its parent.
            let alone = self.index.trailing_zeros();
            self.index >>= alone;
            self.last >>= alone;
            Side::Left
        } else {
            Side::Right
        };
        self.index /= 2;
        self.last /= 2;
        Some(side)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::convert::Infallible;

    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use proptest::prelude::*;
    use sha2::Sha256;

    use super::*;

    /// A tree as a caller keeps it, with the leaves beside it for the oracles.
    struct Kept {
        leaves: Vec<Digest>,
        frontier: Frontier,
        tiles: HashMap<TileId, Tile>,
    }

    impl Kept {
        fn of(size: u64) -> Self {
            let mut tree =
                Self { leaves: Vec::new(), frontier: Frontier::default(), tiles: HashMap::new() };
            for number in 0..size {
                let leaf = leaf_hash(&entry(number));
                let mut completed = Vec::new();
                tree.frontier.push(leaf, &mut completed);
                tree.leaves.push(leaf);
                tree.tiles.extend(completed.into_iter().map(|tile| (tile.id(), tile)));
            }
            tree
        }

        fn nodes(&self) -> impl Nodes<Error = TileId> {
            Tiled::new(&self.frontier, |id| self.tiles.get(&id).ok_or(id))
        }

        fn pending(&self, size: u64) -> Vec<Vec<Digest>> {
            let hash = |level: u8, index: u64| match level.checked_sub(1) {
                None => self.leaves[index as usize],
                Some(level) => self.tiles[&TileId { level, index }].root(),
            };
            let hashes =
                |Pending { level, nodes }: Pending| nodes.map(|index| hash(level, index)).collect();
            pending(size).into_iter().map(hashes).collect()
        }
    }

    fn entry(number: u64) -> Digest {
        Digest::of(&number.to_be_bytes())
    }

    /// MTH, PATH and SUBPROOF as RFC 6962 writes them.
    mod rfc {
        use super::*;

        fn split(leaves: &[Digest]) -> usize {
            leaves.len().next_power_of_two() / 2
        }

        pub(super) fn root(leaves: &[Digest]) -> Digest {
            match leaves {
                [] => empty_root(),
                [leaf] => *leaf,
                _ => {
                    let (left, right) = leaves.split_at(split(leaves));
                    let parts = [&[1][..], root(left).as_bytes(), root(right).as_bytes()].concat();
                    Digest::of(&parts)
                }
            }
        }

        pub(super) fn path(index: usize, leaves: &[Digest]) -> Vec<Digest> {
            if leaves.len() == 1 {
                return Vec::new();
            }
            let k = split(leaves);
            let (left, right) = leaves.split_at(k);
            let (mut path, sibling) = if index < k {
                (path(index, left), root(right))
            } else {
                (path(index - k, right), root(left))
            };
            path.push(sibling);
            path
        }

        pub(super) fn subproof(old: usize, leaves: &[Digest], whole: bool) -> Vec<Digest> {
            if old == leaves.len() {
                return if whole { Vec::new() } else { vec![root(leaves)] };
            }
            let k = split(leaves);
            let (left, right) = leaves.split_at(k);
            let (mut proof, sibling) = if old <= k {
                (subproof(old, left, whole), root(right))
            } else {
                (subproof(old - k, right, false), root(left))
            };
            proof.push(sibling);
            proof
        }

        /// The turns from the root down to a leaf: what a proof knows of index and size.
        pub(super) fn turns(index: u64, size: u64) -> Vec<bool> {
            if size == 1 {
                return Vec::new();
            }
            let k = 1 << (size - 1).ilog2();
            let (right, rest) = if index < k {
                (false, turns(index, k))
            } else {
                (true, turns(index - k, size - k))
            };
            [vec![right], rest].concat()
        }
    }

    fn flip(digest: &Digest, bit: usize) -> Digest {
        let mut bytes = *digest.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        Digest::from_bytes(bytes)
    }

    fn flipped_proofs(proof: &[Digest]) -> impl Iterator<Item = Vec<Digest>> + '_ {
        (0..proof.len() * 256).map(|bit| {
            let mut proof = proof.to_vec();
            proof[bit / 256] = flip(&proof[bit / 256], bit % 256);
            proof
        })
    }

    #[test]
    fn the_published_roots_are_met() {
        // RFC 6962 test data of the Certificate Transparency project, sizes 1, 2 and 3.
        let data: [&[u8]; 3] = [b"", &[0x00], &[0x10]];
        let leaves: Vec<Digest> = data.map(|data| Digest::of_parts(&[&[0], data])).to_vec();
        let published = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        ];
        let mut frontier = Frontier::default();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(frontier.root().to_string(), empty);
        for (leaf, root) in leaves.into_iter().zip(published) {
            frontier.push(leaf, &mut Vec::new());
            assert_eq!(frontier.root().to_string(), root);
        }
    }

    #[test]
    fn every_root_up_to_1100_is_that_of_the_rfc_and_of_ct_merkle() {
        let mut oracle = MemoryBackedTree::<Sha256, [u8; 32]>::new();
        let tree = Kept::of(1100);
        let mut growing = Frontier::default();
        for size in 0..=1100 {
            let root = growing.root();
            assert_eq!(root, rfc::root(&tree.leaves[..size as usize]), "size {size}");
            assert_eq!(root.as_bytes()[..], oracle.root().as_bytes()[..], "size {size}");
            assert_eq!(root_at(&tree.nodes(), size), Ok(root), "size {size}");
            oracle.push(*entry(size).as_bytes());
            growing.push(leaf_hash(&entry(size)), &mut Vec::new());
        }
    }

    #[test]
    fn a_frontier_restored_at_any_size_grows_like_the_one_that_was_pushed() {
        let tree = Kept::of(1100);
        let mut pushed = Frontier::default();
        for size in 0..1100 {
            let mut restored = Frontier::restore(size, &tree.pending(size)).unwrap();
            assert_eq!((restored.size(), restored.root()), (size, pushed.root()));
            let leaf = tree.leaves[size as usize];
            let (mut by_restored, mut by_pushed) = (Vec::new(), Vec::new());
            restored.push(leaf, &mut by_restored);
            pushed.push(leaf, &mut by_pushed);
            assert_eq!((restored.root(), by_restored), (pushed.root(), by_pushed));
        }
    }

    #[test]
    fn tiles_come_out_lowest_level_first_and_each_once() {
        let mut frontier = Frontier::default();
        let mut completed = Vec::new();
        for number in 0..32 * 32 {
            frontier.push(leaf_hash(&entry(number)), &mut completed);
        }
        let mut expected: Vec<TileId> = (0..32).map(|index| TileId { level: 0, index }).collect();
        expected.push(TileId { level: 1, index: 0 });
        assert_eq!(completed.iter().map(Tile::id).collect::<Vec<_>>(), expected);
        assert!(completed.iter().all(Tile::is_consistent));
        assert_eq!(completed[32].root(), frontier.root());
    }

    #[test]
    fn a_frontier_is_restored_only_from_exactly_what_is_pending() {
        let tree = Kept::of(70);
        let hashes = tree.pending(70);
        assert_eq!(
            pending(70),
            [Pending { level: 0, nodes: 64..70 }, Pending { level: 1, nodes: 0..2 }]
        );
        let refused = |size, levels: &[Vec<Digest>]| Frontier::restore(size, levels).unwrap_err();
        assert_eq!(refused(70, &hashes[..1]), RestoreError::Levels { expected: 2, found: 1 });
        assert_eq!(refused(0, &hashes), RestoreError::Levels { expected: 0, found: 2 });
        let wrong = RestoreError::Nodes { level: 0, expected: 7, found: 6 };
        assert_eq!(refused(71, &hashes), wrong);
        assert_eq!(refused(u64::MAX, &hashes), RestoreError::TooLarge(u64::MAX));
        assert!(pending(0).is_empty());
        assert_eq!(pending(u64::MAX).len(), 13);
    }

    #[test]
    fn a_changed_bit_anywhere_in_a_tile_is_noticed() {
        let tree = Kept::of(32);
        let id = TileId { level: 0, index: 0 };
        let bytes = tree.tiles[&id].as_bytes();
        assert_eq!(Tile::from_bytes(id, bytes).as_ref(), Ok(&tree.tiles[&id]));
        for at in 0..TILE_BYTES {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 0x10;
            assert!(!Tile::from_bytes(id, &bytes).unwrap().is_consistent(), "byte {at}");
        }
        for length in [0, 1, 32, TILE_BYTES - 32, TILE_BYTES - 1, TILE_BYTES + 1, TILE_BYTES + 32] {
            assert_eq!(Tile::from_bytes(id, &vec![0; length]), Err(TileLength(length)));
        }
    }

    #[test]
    fn every_perfect_subtree_can_be_asked_for_and_no_other() {
        for size in [0, 1, 31, 32, 33, 63, 64, 1023, 1024, 1025, 1100] {
            let tree = Kept::of(size);
            for height in 0..12_u32 {
                for index in 0..(size >> height) {
                    let leaves = (index << height) as usize..((index + 1) << height) as usize;
                    let root = rfc::root(&tree.leaves[leaves]);
                    assert_eq!(tree.nodes().node(height, index), Ok(root));
                }
                for index in [size >> height, (size >> height) + 1, u64::MAX] {
                    let none = Err(TreeError::NoNode { height, index });
                    assert_eq!(tree.nodes().node(height, index), none);
                }
            }
            for height in [63, 64, 65, 1300, u32::MAX] {
                assert!(tree.nodes().node(height, 0).is_err());
            }
        }
    }

    #[test]
    fn a_missing_tile_is_an_error_of_the_store() {
        let mut tree = Kept::of(100);
        let lost = TileId { level: 0, index: 1 };
        tree.tiles.remove(&lost);
        let proof = inclusion_proof(&tree.nodes(), 40, 100);
        assert_eq!(proof, Err(TreeError::Store(lost)));
    }

    #[test]
    fn a_proof_asks_for_each_tile_on_its_way_once() {
        let tree = Kept::of(5000);
        let asked = RefCell::new(Vec::new());
        let nodes = Tiled::new(&tree.frontier, |id| {
            asked.borrow_mut().push(id);
            tree.tiles.get(&id).ok_or(id)
        });
        inclusion_proof(&nodes, 40, 5000).unwrap();
        let tile = |level, index| TileId { level, index };
        assert_eq!(asked.take(), [tile(0, 1), tile(1, 0)]);
    }

    #[test]
    fn a_proof_of_what_is_not_there_is_not_made() {
        let tree = Kept::of(10);
        let nodes = tree.nodes();
        assert_eq!(inclusion_proof(&nodes, 10, 10), Err(TreeError::NoLeaf { index: 10, size: 10 }));
        assert_eq!(consistency_proof(&nodes, 6, 5), Err(TreeError::Shrinks { old: 6, new: 5 }));
        assert_eq!(root_at(&nodes, 11), Err(TreeError::NoNode { height: 0, index: 10 }));
        for size in [11, 16, 1 << 63, u64::MAX] {
            assert!(root_at(&nodes, size).is_err());
            assert!(inclusion_proof(&nodes, 0, size).is_err());
            assert!(consistency_proof(&nodes, 3, size).is_err());
        }
    }

    #[test]
    fn from_the_empty_tree_or_to_itself_there_is_nothing_to_prove() {
        let tree = Kept::of(9);
        let root = tree.frontier.root();
        for size in 0..=9 {
            let root = root_at(&tree.nodes(), size).unwrap();
            assert_eq!(consistency_proof(&tree.nodes(), 0, size), Ok(Vec::new()));
            assert_eq!(consistency_proof(&tree.nodes(), size, size), Ok(Vec::new()));
            assert_eq!(verify_consistency(0, &empty_root(), size, &root, &[]), Ok(()));
            assert_eq!(verify_consistency(size, &root, size, &root, &[]), Ok(()));
        }
        let other = entry(0);
        let too_long = Err(ConsistencyError::TooLong);
        assert_eq!(verify_consistency(9, &root, 9, &root, &[other]), too_long);
        assert_eq!(verify_consistency(0, &empty_root(), 9, &root, &[other]), too_long);
        let other_root = Err(ConsistencyError::OtherOldRoot);
        assert_eq!(verify_consistency(0, &other, 9, &root, &[]), other_root);
        assert_eq!(verify_consistency(0, &other, 0, &other, &[]), other_root);
        let other_root = Err(ConsistencyError::OtherNewRoot);
        assert_eq!(verify_consistency(9, &root, 9, &other, &[]), other_root);
        assert_eq!(verify_consistency(0, &empty_root(), 0, &other, &[]), other_root);
    }

    #[test]
    fn a_proof_of_the_wrong_length_is_refused_as_such() {
        let tree = Kept::of(20);
        let (leaf, root) = (tree.leaves[5], tree.frontier.root());
        let proof = inclusion_proof(&tree.nodes(), 5, 20).unwrap();
        let longer = [&proof[..], &[leaf]].concat();
        let check = |proof: &[Digest]| verify_inclusion(&leaf, 5, 20, proof, &root);
        assert_eq!(check(&proof), Ok(()));
        assert_eq!(check(&longer), Err(InclusionError::TooLong));
        assert_eq!(check(&proof[..proof.len() - 1]), Err(InclusionError::TooShort));
        assert_eq!(check(&[]), Err(InclusionError::TooShort));

        let old_root = root_at(&tree.nodes(), 6).unwrap();
        let proof = consistency_proof(&tree.nodes(), 6, 20).unwrap();
        let longer = [&proof[..], &[leaf]].concat();
        let check = |proof: &[Digest]| verify_consistency(6, &old_root, 20, &root, proof);
        assert_eq!(check(&proof), Ok(()));
        assert_eq!(check(&longer), Err(ConsistencyError::TooLong));
        assert_eq!(check(&proof[..proof.len() - 1]), Err(ConsistencyError::TooShort));
        assert_eq!(check(&[]), Err(ConsistencyError::TooShort));
    }

    #[test]
    fn every_changed_bit_of_an_inclusion_proof_is_refused() {
        for (index, size) in [(0, 1), (0, 2), (2, 3), (4, 5), (6, 7), (40, 77), (76, 77), (99, 128)]
        {
            let tree = Kept::of(size);
            let (leaf, root) = (tree.leaves[index as usize], tree.frontier.root());
            let proof = inclusion_proof(&tree.nodes(), index, size).unwrap();
            let refused = |leaf: &Digest, index, size, proof: &[Digest], root: &Digest| {
                verify_inclusion(leaf, index, size, proof, root).is_err()
            };
            assert!(!refused(&leaf, index, size, &proof, &root));
            for changed in flipped_proofs(&proof) {
                assert!(refused(&leaf, index, size, &changed, &root));
            }
            for bit in 0..256 {
                assert!(refused(&flip(&leaf, bit), index, size, &proof, &root));
                assert!(refused(&leaf, index, size, &proof, &flip(&root, bit)));
            }
            for bit in 0..64 {
                assert!(refused(&leaf, index ^ 1 << bit, size, &proof, &root));
                let other = size ^ 1 << bit;
                let same = index < other && rfc::turns(index, size) == rfc::turns(index, other);
                assert_eq!(refused(&leaf, index, other, &proof, &root), !same);
            }
        }
    }

    #[test]
    fn every_changed_bit_of_a_consistency_proof_is_refused() {
        for (old, new) in [(1, 2), (2, 3), (3, 7), (6, 7), (64, 77), (40, 77), (76, 77), (99, 128)]
        {
            let tree = Kept::of(new);
            let new_root = tree.frontier.root();
            let old_root = root_at(&tree.nodes(), old).unwrap();
            let proof = consistency_proof(&tree.nodes(), old, new).unwrap();
            let refused = |old, old_root: &Digest, new, new_root: &Digest, proof: &[Digest]| {
                verify_consistency(old, old_root, new, new_root, proof).is_err()
            };
            assert!(!refused(old, &old_root, new, &new_root, &proof));
            for changed in flipped_proofs(&proof) {
                assert!(refused(old, &old_root, new, &new_root, &changed));
            }
            for bit in 0..256 {
                assert!(refused(old, &flip(&old_root, bit), new, &new_root, &proof));
                assert!(refused(old, &old_root, new, &flip(&new_root, bit), &proof));
            }
            for bit in 0..64 {
                assert!(refused(old ^ 1 << bit, &old_root, new, &new_root, &proof));
                let other = new ^ 1 << bit;
                let same = old < other && rfc::turns(old - 1, new) == rfc::turns(old - 1, other);
                assert_eq!(refused(old, &old_root, other, &new_root, &proof), !same);
            }
        }
    }

    /// A tree in which every node has the same hash: sizes that nobody can push.
    struct Endless;

    impl Nodes for Endless {
        type Error = Infallible;

        fn node(&self, height: u32, index: u64) -> Result<Digest, TreeError<Infallible>> {
            assert!(height < 64 && index <= u64::MAX >> height);
            Ok(Digest::GENESIS)
        }
    }

    #[test]
    fn leaves_that_come_together_make_the_tree_and_the_tiles_of_one_after_another() {
        let entries: Vec<Digest> = (0..2_200).map(entry).collect();
        let leaves = leaf_hashes(&entries);
        assert!(leaves.iter().zip(&entries).all(|(leaf, entry)| *leaf == leaf_hash(entry)));
        for at_once in [1, 31, 32, 33, 64, 700, 2_200] {
            let (mut single, mut many) = (Frontier::default(), Frontier::default());
            let (mut tiles, mut together) = (Vec::new(), Vec::new());
            for part in leaves.chunks(at_once) {
                part.iter().for_each(|leaf| single.push(*leaf, &mut tiles));
                many.extend(part, &mut together);
                assert_eq!((many.size(), many.root()), (single.size(), single.root()));
            }
            assert_eq!(together, tiles, "{at_once}");
        }
    }

    proptest! {
        #[test]
        fn proofs_are_those_of_the_rfc_and_convince(
            size in 1_u64..600, grown in 0_u64..600, pick in any::<prop::sample::Index>(),
        ) {
            let tree = Kept::of(size + grown);
            let leaves = &tree.leaves[..size as usize];
            let root = root_at(&tree.nodes(), size).unwrap();
            let index = pick.index(leaves.len());
            let proof = inclusion_proof(&tree.nodes(), index as u64, size).unwrap();
            prop_assert_eq!(&proof, &rfc::path(index, leaves));
            let verdict = verify_inclusion(&leaves[index], index as u64, size, &proof, &root);
            prop_assert_eq!(verdict, Ok(()));

            let old = index + 1;
            let proof = consistency_proof(&tree.nodes(), old as u64, size).unwrap();
            prop_assert_eq!(&proof, &rfc::subproof(old, leaves, true));
            let old_root = rfc::root(&leaves[..old]);
            let verdict = verify_consistency(old as u64, &old_root, size, &root, &proof);
            prop_assert_eq!(verdict, Ok(()));
        }

        #[test]
        fn proofs_are_those_of_ct_merkle(
            size in 1_u64..600, pick in any::<prop::sample::Index>(),
        ) {
            let tree = Kept::of(size);
            let mut oracle = MemoryBackedTree::<Sha256, [u8; 32]>::new();
            (0..size).for_each(|number| oracle.push(*entry(number).as_bytes()));
            let index = pick.index(size as usize);
            let bytes = |proof: Vec<Digest>| {
                proof.iter().flat_map(|hash| *hash.as_bytes()).collect::<Vec<u8>>()
            };
            let proof = bytes(inclusion_proof(&tree.nodes(), index as u64, size).unwrap());
            let theirs = oracle.prove_inclusion(index);
            prop_assert_eq!(&proof[..], theirs.as_bytes());
            let proof = bytes(consistency_proof(&tree.nodes(), index as u64 + 1, size).unwrap());
            let theirs = oracle.prove_consistency(size as usize - index - 1);
            // Between equal trees ct-merkle gives a hash; by the RFC the proof is empty.
            let theirs = if index as u64 + 1 == size { &[] } else { theirs.as_bytes() };
            prop_assert_eq!(&proof[..], theirs);
        }

        #[test]
        fn a_proof_for_one_leaf_convinces_for_no_other(
            size in 2_u64..600, here in any::<u64>(), there in any::<u64>(),
        ) {
            let (here, there) = (here % size, there % size);
            prop_assume!(here != there);
            let tree = Kept::of(size);
            let root = tree.frontier.root();
            let proof = inclusion_proof(&tree.nodes(), here, size).unwrap();
            let leaf = &tree.leaves[here as usize];
            prop_assert!(verify_inclusion(leaf, there, size, &proof, &root).is_err());
            let other = &tree.leaves[there as usize];
            prop_assert!(verify_inclusion(other, here, size, &proof, &root).is_err());
        }

        #[test]
        fn trees_of_any_size_are_proved_and_verified_without_panic(
            near in 0_u64..3, a in any::<u64>(), b in any::<u64>(), bits in 0_u32..64,
            noise in prop::collection::vec(any::<[u8; 32]>(), 0..130),
        ) {
            let size = if near == 0 { a >> bits } else { u64::MAX - (near - 1) }.max(1);
            let index = b % size;
            let leaf = Digest::GENESIS;
            let root = root_at(&Endless, size).unwrap();
            let proof = inclusion_proof(&Endless, index, size).unwrap();
            prop_assert!(proof.len() <= 64);
            let way = verify_inclusion(&leaf, index, size, &proof, &root);
            prop_assert!(matches!(way, Ok(()) | Err(InclusionError::OtherRoot)));
            let proof = consistency_proof(&Endless, index, size).unwrap();
            let way = verify_consistency(index, &root, size, &root, &proof);
            prop_assert!(!matches!(way, Err(ConsistencyError::TooShort | ConsistencyError::TooLong)));

            let noise: Vec<Digest> = noise.into_iter().map(Digest::from_bytes).collect();
            prop_assert!(verify_inclusion(&leaf, b, a, &noise, &root).is_err());
            if b != 0 {
                prop_assert!(verify_consistency(b, &leaf, a, &root, &noise).is_err());
            }
        }
    }
}
