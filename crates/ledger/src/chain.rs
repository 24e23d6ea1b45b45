//! The chain in memory: gives every record its number, its hash and its place in the tree.
//!
//! **Invariant.** What was hashed is never touched again: a row leaves here only for the database.

use fluffy_base::Digest;

use crate::merkle::{Frontier, leaf_hash};
use crate::store::{NewRow, OwnedEntry};
use crate::{Appended, Record};

/// The end of the chain, and what has not been written yet.
#[derive(Debug)]
pub(crate) struct Chain {
    head: Digest,
    frontier: Frontier,
    pending: Vec<NewRow>,
    scratch: Vec<u8>,
}

impl Chain {
    pub(crate) fn new(head: Digest, frontier: Frontier) -> Self {
        Self { head, frontier, pending: Vec::new(), scratch: Vec::with_capacity(2048) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.frontier.size()
    }

    pub(crate) fn head(&self) -> Digest {
        self.head
    }

    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    pub(crate) fn take_pending(&mut self) -> Vec<NewRow> {
        std::mem::take(&mut self.pending)
    }

    /// Appends a record; `input` is the hash of its input, which is computed before anybody has to
    /// wait for it.
    pub(crate) fn push(&mut self, record: Record, input: Option<Digest>) -> Appended {
        let seq = self.size();
        let ts_ms = record.time();
        let detail = record.detail.encode(seq, input.as_ref());
        let entry = OwnedEntry {
            request_id: record.request_id,
            actor: record.actor,
            intent: record.intent,
            decision: record.decision,
            state_from: record.state_from,
            state_to: record.state_to,
            ts_ms,
            tool_name: record.tool_name,
            params_hash: record.params_hash,
            evidence_hash: Digest::of(&detail),
            error: record.error,
        };
        let entry_hash = entry.view().hash(&self.head, &mut self.scratch);
        let mut tiles = Vec::new();
        self.frontier.push(leaf_hash(&entry_hash), &mut tiles);
        self.head = entry_hash;
        self.pending.push(NewRow { seq, entry_hash, entry, detail, blob: record.input, tiles });
        Appended { seq, entry_hash }
    }
}
