//! One segment of the ledger, read-only: sizes, proofs and verification while a kernel may write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fluffy_base::{Digest, KernelId};
use rusqlite::Connection;

use crate::held::Held;
use crate::merkle::Frontier;
use crate::recovery::{self, Memory, checkpoint_origin};
use crate::tree::{self, Tree};
use crate::{
    ArchiveCheck, ByteCheck, Checkpoint, ConsistencyProof, DetailView, InclusionProof, Layout,
    LedgerError, Located, Problem, ProtocolCheck, SigningKey, VerifyingKey, archive_check, store,
    verify_bytes, verify_protocol, verify_structure,
};

/// One segment as it was at one moment.
#[derive(Debug)]
pub struct Segment {
    number: u32,
    path: PathBuf,
    edge: Frontier,
    head: Digest,
    kernel_id: KernelId,
    tree: Tree,
}

impl Segment {
    /// The segment that is written to; `None` where there is no ledger yet.
    pub fn active(layout: &Layout) -> Result<Option<Self>, LedgerError> {
        layout.active()?.map(|number| Self::open(layout, number)).transpose()
    }

    /// A segment by its number.
    pub fn open(layout: &Layout, number: u32) -> Result<Self, LedgerError> {
        let path = layout.segment(number);
        let connection = store::open_reader(&path)?;
        let reading = LedgerError::database;
        if let Some(problem) = store::schema_problem(&connection).map_err(reading("reading"))? {
            return Err(LedgerError::Damaged(problem));
        }
        // One transaction, so that size, edge and head are of the same moment.
        connection.execute_batch("BEGIN").map_err(reading("reading"))?;
        let size = store::size(&connection).map_err(reading("reading"))?;
        let damaged = |error: tree::TileError| LedgerError::Damaged(error.to_string());
        let edge = tree::restore(&connection, size).map_err(damaged)?;
        let head = store::hash_before(&connection, size)?;
        let kernel_id = first_kernel(&connection)?;
        let tree = Tree::open(&path)?;
        Ok(Self { number, path, edge, head, kernel_id, tree })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its database.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many entries it has.
    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Hash of its last entry.
    pub fn head(&self) -> Digest {
        self.head
    }

    /// The kernel that writes it.
    pub fn kernel_id(&self) -> &KernelId {
        &self.kernel_id
    }

    /// Signs the tree as it is.
    pub fn checkpoint(&self, key: &SigningKey) -> Result<String, LedgerError> {
        let origin = checkpoint_origin(&self.kernel_id, self.number);
        let checkpoint = Checkpoint { origin, size: self.size(), root: self.edge.root() };
        Ok(checkpoint.sign(key)?)
    }

    /// Proves that an entry is in the segment.
    pub fn prove(&self, seq: u64, key: &SigningKey) -> Result<InclusionProof, LedgerError> {
        let proof = self.inclusion_path(seq)?;
        let entry_hash = match Held::open(&self.path)?.archived(seq)? {
            Some(line) => line.entry_hash,
            None => self.tree.entry_hash(seq)?,
        };
        Ok(InclusionProof { seq, entry_hash, proof, checkpoint: self.checkpoint(key)? })
    }

    /// The hashes beside the way from an entry to the root.
    pub fn inclusion_path(&self, seq: u64) -> Result<Vec<Digest>, LedgerError> {
        if seq >= self.size() {
            return Err(LedgerError::NoSuchEntry { wanted: seq, size: self.size() });
        }
        let damaged = |error: crate::merkle::TreeError<_>| LedgerError::Damaged(error.to_string());
        self.tree.inclusion(&self.edge, seq).map_err(damaged)
    }

    /// Proves that the segment continues the state in which it had `old_size` entries.
    pub fn prove_since(
        &self,
        old_size: u64,
        key: &SigningKey,
    ) -> Result<ConsistencyProof, LedgerError> {
        if old_size > self.size() {
            return Err(LedgerError::NoSuchEntry { wanted: old_size, size: self.size() });
        }
        let damaged = |error: crate::merkle::TreeError<_>| LedgerError::Damaged(error.to_string());
        let old_root = self.tree.root_at(&self.edge, old_size).map_err(damaged)?;
        let proof = self.tree.consistency(&self.edge, old_size).map_err(damaged)?;
        Ok(ConsistencyProof { old_size, old_root, proof, checkpoint: self.checkpoint(key)? })
    }
}

/// What verifying one segment found.
#[derive(Debug)]
pub struct SegmentCheck {
    /// Its number.
    pub number: u32,
    /// The level *bytes*.
    pub bytes: ByteCheck,
    /// The level *protocol*; `None` where the bytes could not be read to the end.
    pub protocol: Option<ProtocolCheck>,
    /// The archives of the segment.
    pub archives: ArchiveCheck,
    /// What is remembered of the segment, against what is there: of the newest the signed checkpoint,
    /// of an older one what the next one says of it.
    pub memory: Option<Located>,
}

impl SegmentCheck {
    /// Everything that is wrong.
    pub fn findings(&self) -> impl Iterator<Item = &Located> {
        let protocol = self.protocol.iter().flat_map(|check| &check.findings);
        let archives = &self.archives.findings;
        self.bytes.findings.iter().chain(protocol).chain(archives).chain(&self.memory)
    }
}

/// Verifies every segment, and the newest against the remembered checkpoint.
pub fn verify_segments(
    layout: &Layout,
    key: Option<&VerifyingKey>,
) -> Result<Vec<SegmentCheck>, LedgerError> {
    // Read first: what is remembered is never ahead of what is written.
    let memory = key.map(|key| recovery::recall(layout, key)).transpose()?;
    let segments = layout.segments()?;
    let remembered = match &memory {
        Some(Memory::Of { segment, .. }) => Some(*segment),
        Some(Memory::Forged(_)) => Some(1),
        Some(Memory::None) | None => None,
    };
    // Every segment but the first has one before it.
    let before = segments.iter().map(|number| number - 1).filter(|number| *number > 0);
    let wanted: BTreeSet<u32> = segments.iter().copied().chain(before).chain(remembered).collect();
    let newest = wanted.last().copied();
    let (mut checks, mut seal) = (Vec::new(), None);
    for number in wanted.into_iter().rev() {
        let there = segments.contains(&number);
        let mut check = if there { verify_segment(layout, number)? } else { missing(number) };
        check.memory = match (&memory, Some(number) == newest) {
            (None, true) => {
                Some(Located::nowhere(Problem::CheckpointForged("the key is missing".into())))
            }
            (Some(memory), true) => broken_promise(layout, &check, memory)?,
            (_, false) => broken_seal(&check, seal.as_ref()),
        };
        seal = Seal::read(layout, &check)?;
        // One that is not there is left out if nothing was left of it, and the next one says so.
        if there || check.memory.is_some() {
            checks.push(check);
        }
    }
    checks.reverse();
    Ok(checks)
}

fn verify_segment(layout: &Layout, number: u32) -> Result<SegmentCheck, LedgerError> {
    let path = layout.segment(number);
    let mut bytes = verify_bytes(&path)?;
    let intact = bytes.findings.is_empty();
    // The one reads pages and the other entries, each on one processor.
    let (structure, protocol) = std::thread::scope(|scope| {
        let structure = scope.spawn(|| verify_structure(&path));
        let protocol = intact.then(|| verify_protocol(&path)).transpose();
        (structure.join(), protocol)
    });
    let panicked = |_| LedgerError::Stopped("a verification thread panicked".to_owned());
    bytes.findings.extend(structure.map_err(panicked)??);
    let protocol = protocol?;
    let books = protocol.as_ref().map(|check| &check.books);
    let archives = archive_check::verify(layout, number, books)?;
    Ok(SegmentCheck { number, bytes, protocol, archives, memory: None })
}

fn missing(number: u32) -> SegmentCheck {
    let bytes = ByteCheck {
        entries: 0,
        head: Digest::GENESIS,
        tree_root: crate::merkle::empty_root(),
        findings: Vec::new(),
    };
    let archives = ArchiveCheck::default();
    SegmentCheck { number, bytes, protocol: None, archives, memory: None }
}

/// What the first entry of a segment says of the one before it.
#[derive(Debug)]
struct Seal {
    segment: u32,
    size: u64,
    root: Digest,
}

impl Seal {
    /// Reads the seal in a segment that was verified; one that is damaged proves nothing.
    fn read(layout: &Layout, check: &SegmentCheck) -> Result<Option<Self>, LedgerError> {
        if check.bytes.entries == 0 || !check.bytes.findings.is_empty() {
            return Ok(None);
        }
        let detail = first_detail(&store::open_reader(&layout.segment(check.number))?)?;
        let Ok(detail) = DetailView::parse(&detail) else { return Ok(None) };
        let named = |key: &str| detail.metadata.get(key).map(|value| &**value);
        let parse = || {
            Some(Self {
                segment: named("broken_segment")?.parse().ok()?,
                size: named("salvaged")?.parse().ok()?,
                root: named("salvaged_root")?.parse().ok()?,
            })
        };
        Ok(parse())
    }
}

/// Compares an older segment with what the next one says was left of it.
fn broken_seal(check: &SegmentCheck, seal: Option<&Seal>) -> Option<Located> {
    let found = check.bytes.entries;
    match seal {
        Some(seal) if seal.segment == check.number => {
            if found == seal.size && check.bytes.tree_root == seal.root {
                None
            } else if found < seal.size {
                let promised = seal.size;
                Some(Located::at(found, Problem::Truncated { found, promised }))
            } else {
                Some(Located::nowhere(Problem::Rewritten { size: seal.size }))
            }
        }
        _ if found == 0 => Some(Located::nowhere(Problem::LedgerMissing)),
        _ => {
            let text = "the next segment does not say what was left of this one".to_owned();
            Some(Located::nowhere(Problem::Protocol(text)))
        }
    }
}

fn broken_promise(
    layout: &Layout,
    last: &SegmentCheck,
    memory: &Memory,
) -> Result<Option<Located>, LedgerError> {
    Ok(match memory {
        Memory::None => Some(Located::nowhere(Problem::CheckpointMissing)),
        Memory::Forged(why) => Some(Located::nowhere(Problem::CheckpointForged(why.clone()))),
        Memory::Of { segment, .. } if *segment != last.number => {
            Some(recovery::outdated(*segment, last.number))
        }
        Memory::Of { .. } if !layout.segment(last.number).exists() => {
            Some(Located::nowhere(Problem::LedgerMissing))
        }
        // What could not be read at all was reported already.
        Memory::Of { .. } if last.bytes.entries == 0 && !last.bytes.findings.is_empty() => None,
        Memory::Of { checkpoint, .. } if checkpoint.size > last.bytes.entries => {
            let (found, promised) = (last.bytes.entries, checkpoint.size);
            Some(Located::at(found, Problem::Truncated { found, promised }))
        }
        // Damaged bytes were reported already; the tree over them proves nothing more.
        Memory::Of { .. } if !last.bytes.findings.is_empty() => None,
        Memory::Of { checkpoint, .. } => {
            let segment = Segment::open(layout, last.number)?;
            if checkpoint_origin(segment.kernel_id(), last.number) != checkpoint.origin {
                let text = "it is another ledger than the remembered one".to_owned();
                return Ok(Some(Located::nowhere(Problem::Protocol(text))));
            }
            let problem = recovery::hold_against(&segment.tree, &segment.edge, checkpoint)?;
            problem.map(Located::nowhere)
        }
    })
}

fn first_detail(connection: &Connection) -> Result<Vec<u8>, LedgerError> {
    connection
        .query_row("SELECT detail FROM entries WHERE seq = 0", [], |row| row.get(0))
        .map_err(LedgerError::database("reading the first entry"))
}

pub(crate) fn first_kernel(connection: &Connection) -> Result<KernelId, LedgerError> {
    let detail = first_detail(connection)?;
    DetailView::kernel_in(&detail)
        .ok_or_else(|| LedgerError::Damaged("the first entry names no kernel".to_owned()))
}
