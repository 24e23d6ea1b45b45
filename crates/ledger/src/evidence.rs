//! Evidence in memory, for programs that use the kernel as a library.

use std::thread;

use fluffy_base::{Digest, KernelId};

use crate::merkle::{Frontier, leaf_hash};
use crate::query::owned;
use crate::store::{self, ENTRY_COLUMNS, StoredEntry};
use crate::{AuditEntry, LedgerError, Located, Problem, Segment, SigningKey, VerifyingKey};

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
}

impl EvidenceBundle {
    /// Collects the evidence of a segment.
    pub fn collect(
        segment: &Segment,
        key: &SigningKey,
        exported_at_ms: u64,
    ) -> Result<Self, LedgerError> {
        let connection = store::open_reader(segment.path())?;
        let reading = LedgerError::database;
        let sql = format!("SELECT {ENTRY_COLUMNS} FROM entries WHERE seq < ?1 ORDER BY seq");
        let mut statement = connection.prepare(&sql).map_err(reading("exporting"))?;
        let mut rows =
            statement.query([store::key(segment.size())]).map_err(reading("exporting"))?;
        let (mut entries, mut details) = (Vec::new(), Vec::new());
        let mut prev = Digest::GENESIS;
        while let Some(row) = rows.next().map_err(reading("exporting"))? {
            let stored = StoredEntry::from_row(row)?;
            entries.push(owned(&stored, prev)?);
            details.push(stored.detail.to_vec());
            prev = stored.entry_hash;
        }
        Ok(Self {
            entries,
            details,
            root_hash: segment.head(),
            exported_at_ms,
            kernel_id: segment.kernel_id().clone(),
            checkpoint: segment.checkpoint(key)?,
            public_key: key.verifying_key().clone(),
        })
    }

    /// Everything that is wrong with the entries, their details, the root and the checkpoint.
    pub fn verify(&self) -> Vec<Located> {
        let mut findings = Vec::new();
        if self.entries.len() != self.details.len() {
            let text = "there are not as many details as entries".to_owned();
            findings.push(Located::nowhere(Problem::Format(text)));
        }
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let share = self.entries.len().div_ceil(workers).max(1);
        thread::scope(|scope| {
            let parts = self.entries.chunks(share).zip(self.details.chunks(share)).enumerate();
            let running: Vec<_> = parts
                .map(|(part, (entries, details))| {
                    let before = self.entries.get((part * share).wrapping_sub(1));
                    scope.spawn(move || check_part(before, entries, details))
                })
                .collect();
            for part in running {
                match part.join() {
                    Ok(found) => findings.extend(found),
                    Err(_) => findings.push(Located::nowhere(Problem::Format(
                        "a verification thread panicked".to_owned(),
                    ))),
                }
            }
        });
        let last = self.entries.last().map_or(Digest::GENESIS, |entry| entry.entry_hash);
        if last != self.root_hash {
            findings.push(Located::nowhere(Problem::RootHash));
        }
        findings.extend(self.check_checkpoint());
        findings
    }

    fn check_checkpoint(&self) -> Option<Located> {
        let signed = crate::SignedCheckpoint::parse(&self.checkpoint)
            .and_then(|signed| signed.verify(&self.public_key));
        let (size, mut tree, mut tiles) =
            (self.entries.len() as u64, Frontier::default(), Vec::new());
        for entry in &self.entries {
            tree.push(leaf_hash(&entry.entry_hash), &mut tiles);
            tiles.clear();
        }
        match signed {
            Err(error) => Some(Located::nowhere(Problem::Signature(error.to_string()))),
            Ok(checkpoint) if checkpoint.size != size => {
                let promised = checkpoint.size;
                Some(Located::at(size, Problem::Truncated { found: size, promised }))
            }
            Ok(checkpoint) if checkpoint.root != tree.root() => {
                Some(Located::nowhere(Problem::Rewritten { size }))
            }
            Ok(_) => None,
        }
    }
}

/// Checks neighbouring entries; `before` is the one in front of them.
fn check_part(
    before: Option<&AuditEntry>,
    entries: &[AuditEntry],
    details: &[Vec<u8>],
) -> Vec<Located> {
    let mut findings = Vec::new();
    let mut scratch = Vec::new();
    let mut prev = before.map_or(Digest::GENESIS, |entry| entry.entry_hash);
    let mut seq = before.map_or(0, |entry| entry.seq + 1);
    for (entry, detail) in entries.iter().zip(details) {
        if entry.prev_hash != prev || entry.seq != seq {
            findings.push(Located::at(seq, Problem::PrevHash));
        }
        let computed = entry.view().hash(&prev, &mut scratch);
        if computed != entry.entry_hash {
            let stored = entry.entry_hash;
            findings.push(Located::at(seq, Problem::EntryHash { stored, computed }));
        }
        if entry.evidence_hash != Some(Digest::of(detail)) {
            findings.push(Located::at(seq, Problem::DetailHash));
        }
        prev = entry.entry_hash;
        seq += 1;
    }
    findings
}
