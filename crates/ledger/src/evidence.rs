//! Evidence in memory, for programs that use the kernel as a library.
//!
//! Entries, details and tree are checked in parts of 4,096 on all processors; a part is a perfect
//! subtree, so the root of the whole follows from the roots of the parts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fluffy_base::{Digest, KernelId};

use crate::checkpoint::{open_note, sign_note};
use crate::held::Held;
use crate::merkle::{Frontier, leaf_hashes};
use crate::query::owned;
use crate::verify::MAX_FINDINGS;
use crate::{
    AuditEntry, CheckpointError, LedgerError, Located, Problem, Segment, SignedCheckpoint,
    SigningKey, VerifyingKey,
};

/// Entries of one part: a power of two, so that each but the last is a perfect subtree.
const PART: usize = 1 << 12;
/// Entries that are hashed together: a power of two.
const BATCH: usize = 1 << 6;
/// First line of the text under the seal.
const SEAL_KIND: &str = "fluffy-evidence-head-v1";

/// All entries of a segment with what is needed to verify them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceBundle {
    /// The entries, oldest first.
    pub entries: Vec<AuditEntry>,
    /// The bytes of their details, in the same order.
    pub details: Vec<Vec<u8>>,
    /// Hash of the last entry, or 64 zeros.
    pub root_hash: Digest,
    /// When it was collected.
    pub exported_at_ms: u64,
    /// The kernel that wrote the entries.
    pub kernel_id: KernelId,
    /// The signed checkpoint over them.
    pub checkpoint: String,
    /// The key that signed it.
    pub public_key: VerifyingKey,
    /// The key's signature under the root, the kernel and the time.
    pub seal: String,
}

impl EvidenceBundle {
    /// Collects the evidence of a segment.
    pub fn collect(
        segment: &Segment,
        key: &SigningKey,
        exported_at_ms: u64,
    ) -> Result<Self, LedgerError> {
        let held = Held::open(segment.path())?;
        let (mut entries, mut details) = (Vec::new(), Vec::new());
        let mut prev = Digest::GENESIS;
        held.each(segment.size(), |stored| {
            entries.push(owned(stored, prev)?);
            details.push(stored.detail.to_vec());
            prev = stored.entry_hash;
            Ok(())
        })?;
        let (kernel_id, root_hash) = (segment.kernel_id().clone(), segment.head());
        let sealed = seal_text(&kernel_id, exported_at_ms, &root_hash);
        Ok(Self {
            entries,
            details,
            root_hash,
            exported_at_ms,
            kernel_id,
            checkpoint: segment.checkpoint(key)?,
            public_key: key.verifying_key().clone(),
            seal: sign_note(&sealed, key).map_err(CheckpointError::from)?,
        })
    }

    /// Everything that is wrong with the entries, their details and what is signed; at most a
    /// hundred findings, in order.
    ///
    /// Whether [`EvidenceBundle::public_key`] is the wanted one is for the caller to compare.
    pub fn verify(&self) -> Vec<Located> {
        let mut findings = Vec::new();
        let root = match self.check_parts() {
            Some(parts) => join(parts, &mut findings),
            None => {
                let text = "a verification thread panicked".to_owned();
                return vec![Located::nowhere(Problem::Format(text))];
            }
        };
        if self.details.len() > self.entries.len() {
            let text = "there are more details than entries".to_owned();
            findings.push(Located::nowhere(Problem::Format(text)));
        }
        let last = self.entries.last().map_or(Digest::GENESIS, |entry| entry.entry_hash);
        if last != self.root_hash {
            findings.push(Located::nowhere(Problem::RootHash));
        }
        findings.extend(self.check_checkpoint(&root));
        findings.extend(self.check_seal());
        findings.truncate(MAX_FINDINGS);
        findings
    }

    /// Checks all entries, part by part, on all processors; `None` if a thread panicked.
    fn check_parts(&self) -> Option<Vec<Part>> {
        let count = self.entries.len().div_ceil(PART);
        let workers = thread::available_parallelism().map_or(1, usize::from).min(count);
        let next = AtomicUsize::new(0);
        let work = || {
            let indexes = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let own = indexes.take_while(|index| *index < count);
            own.map(|index| self.check_part(index)).collect::<Vec<_>>()
        };
        let mut parts = thread::scope(|scope| {
            let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let done = running.into_iter().map(|worker| worker.join().ok());
            done.collect::<Option<Vec<_>>>()
        })?;
        let mut parts: Vec<_> = parts.drain(..).flatten().collect();
        parts.sort_unstable_by_key(|part| part.index);
        Some(parts)
    }

    fn check_part(&self, index: usize) -> Part {
        let start = index * PART;
        let entries = self.entries.get(start..).unwrap_or_default();
        let details = self.details.get(start..).unwrap_or_default();
        let before = start.checked_sub(1).and_then(|before| self.entries.get(before));
        let mut prev = before.map_or(Digest::GENESIS, |entry| entry.entry_hash);
        let (mut tree, mut tiles) = (Frontier::default(), Vec::new());
        let mut findings = Vec::new();
        let ours = entries.get(..PART).unwrap_or(entries);
        for (entries, number) in ours.chunks(BATCH).zip(0..) {
            let details = details.get(number * BATCH..).unwrap_or_default();
            let batch = Batch { first: start + number * BATCH, prev, entries, details };
            batch.check(|seq, problem| {
                if findings.len() < MAX_FINDINGS {
                    findings.push(Located::at(seq, problem));
                }
            });
            let hashes: Vec<_> = entries.iter().map(|entry| entry.entry_hash).collect();
            tree.extend(&leaf_hashes(&hashes), &mut tiles);
            tiles.clear();
            prev = hashes.last().copied().unwrap_or(prev);
        }
        Part { index, tree, findings }
    }

    fn check_checkpoint(&self, root: &Digest) -> Option<Located> {
        let size = self.entries.len() as u64;
        let signed = SignedCheckpoint::parse(&self.checkpoint)
            .and_then(|signed| signed.verify(&self.public_key));
        match signed {
            Err(error) => {
                let text = format!("the checkpoint does not hold: {error}");
                Some(Located::nowhere(Problem::Signature(text)))
            }
            Ok(checkpoint) if checkpoint.size != size => {
                let promised = checkpoint.size;
                Some(Located::at(size.min(promised), Problem::Truncated { found: size, promised }))
            }
            Ok(checkpoint) if checkpoint.root != *root => {
                Some(Located::nowhere(Problem::Rewritten { size }))
            }
            Ok(_) => None,
        }
    }

    fn check_seal(&self) -> Option<Located> {
        let text = seal_text(&self.kernel_id, self.exported_at_ms, &self.root_hash);
        let problem = match open_note(&self.seal, &self.public_key) {
            Ok(sealed) if sealed == text => return None,
            Ok(_) => "the bundle was changed after it was sealed".to_owned(),
            Err(error) => format!("the seal does not hold: {error}"),
        };
        Some(Located::nowhere(Problem::Signature(problem)))
    }
}

fn seal_text(kernel_id: &KernelId, exported_at_ms: u64, root_hash: &Digest) -> String {
    format!("{SEAL_KIND}\n{kernel_id}\n{exported_at_ms}\n{root_hash}\n")
}

/// What is left of a part once it is checked.
struct Part {
    index: usize,
    tree: Frontier,
    findings: Vec<Located>,
}

/// Collects what the parts found, and gives the root over all of them.
fn join(parts: Vec<Part>, findings: &mut Vec<Located>) -> Digest {
    let (mut whole, mut tiles) = (Frontier::default(), Vec::new());
    let mut last = None;
    for part in parts {
        findings.extend(part.findings);
        let root = part.tree.root();
        if part.tree.size() == PART as u64 {
            whole.push(root, &mut tiles);
        } else {
            last = Some(root);
        }
    }
    last.map_or_else(|| whole.root(), |right| whole.root_before(right))
}

/// Neighbouring entries whose hashes are computed together.
struct Batch<'a> {
    /// Number of the first.
    first: usize,
    /// Hash of the entry before it.
    prev: Digest,
    entries: &'a [AuditEntry],
    /// Their details, and those of later ones.
    details: &'a [Vec<u8>],
}

impl Batch<'_> {
    /// Tells everything that is wrong, in order.
    fn check(&self, mut find: impl FnMut(u64, Problem)) {
        let before = std::iter::once(&self.prev);
        let before: Vec<_> =
            before.chain(self.entries.iter().map(|entry| &entry.entry_hash)).collect();
        let (mut bytes, mut texts) = (Vec::new(), Vec::new());
        for (entry, prev) in self.entries.iter().zip(&before) {
            let start = bytes.len();
            entry.view().encode_after(prev, &mut bytes);
            texts.push(start..bytes.len());
        }
        let texts = texts.into_iter().map(|text| bytes.get(text).unwrap_or_default());
        let texts = Digest::of_each(&texts.collect::<Vec<_>>());
        let details = self.details.iter().take(self.entries.len()).map(Vec::as_slice);
        let mut details = Digest::of_each(&details.collect::<Vec<_>>()).into_iter();
        let numbered = (self.first as u64..).zip(self.entries);
        for (((seq, entry), prev), computed) in numbered.zip(before).zip(texts) {
            if entry.prev_hash != *prev || entry.seq != seq {
                find(seq, Problem::PrevHash);
            }
            let stored = entry.entry_hash;
            if stored != computed {
                find(seq, Problem::EntryHash { stored, computed });
            }
            match details.next() {
                None => find(seq, Problem::Format("its detail is missing".to_owned())),
                Some(detail) if entry.evidence_hash == Some(detail) => {}
                Some(_) => find(seq, Problem::DetailHash),
            }
        }
    }
}
