//! Proofs that travel alone: one entry, or one earlier state, under a signed checkpoint.

use fluffy_base::Digest;
use serde::{Deserialize, Serialize};

use crate::merkle::{self, leaf_hash};
use crate::{Checkpoint, CheckpointError, SignedCheckpoint, VerifyingKey};

/// Proof that an entry is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    /// Number of the entry.
    pub seq: u64,
    /// Its hash.
    pub entry_hash: Digest,
    /// The hashes beside the way to the root.
    pub proof: Vec<Digest>,
    /// The signed root.
    pub checkpoint: String,
}

/// Proof that the ledger continues an earlier state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyProof {
    /// Size of the earlier state.
    pub old_size: u64,
    /// Root of the earlier state.
    pub old_root: Digest,
    /// The hashes that join both.
    pub proof: Vec<Digest>,
    /// The signed root of the later state.
    pub checkpoint: String,
}

/// Why a proof does not hold.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The checkpoint under it does not hold.
    #[error("the proof's checkpoint does not hold")]
    Checkpoint(#[from] CheckpointError),
    /// The entry is not under the root.
    #[error("the entry is not in the signed ledger")]
    Inclusion(#[from] merkle::InclusionError),
    /// The earlier state is not a beginning of the later one.
    #[error("the signed ledger does not continue the earlier one")]
    Consistency(#[from] merkle::ConsistencyError),
}

impl InclusionProof {
    /// Checks the signature and the way from the entry to the root.
    pub fn verify(&self, key: &VerifyingKey) -> Result<Checkpoint, ProofError> {
        let checkpoint = SignedCheckpoint::parse(&self.checkpoint)?.verify(key)?;
        let leaf = leaf_hash(&self.entry_hash);
        let (size, root) = (checkpoint.size, &checkpoint.root);
        merkle::verify_inclusion(&leaf, self.seq, size, &self.proof, root)?;
        Ok(checkpoint)
    }
}

impl ConsistencyProof {
    /// Checks the signature and that the later state continues the earlier one.
    pub fn verify(&self, key: &VerifyingKey) -> Result<Checkpoint, ProofError> {
        let checkpoint = SignedCheckpoint::parse(&self.checkpoint)?.verify(key)?;
        let (size, root) = (checkpoint.size, &checkpoint.root);
        merkle::verify_consistency(self.old_size, &self.old_root, size, root, &self.proof)?;
        Ok(checkpoint)
    }
}
