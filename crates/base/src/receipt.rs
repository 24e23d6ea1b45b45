//! The kernel's answer to a request.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Digest, Json, KernelState};

/// What was decided about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Decision {
    /// It may proceed.
    Allow,
    /// It may not.
    Deny,
    /// The kernel stopped for good, or had stopped before.
    Halt,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReceiptStatus {
    /// Allowed, and done.
    Accepted,
    /// Refused before anything ran.
    Rejected,
    /// The tool refused its parameters, or ran and failed.
    Failed,
}

/// The one answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelReceipt {
    /// The request's own id; empty where it had none that could be read.
    pub request_id: String,
    /// What became of it.
    pub status: ReceiptStatus,
    /// What was decided.
    pub decision: Decision,
    /// State of the kernel before the request.
    pub state_from: KernelState,
    /// State of the kernel after the request.
    pub state_to: KernelState,
    /// When it was answered.
    pub ts_ms: u64,
    /// What the tool returned, secrets masked.
    pub tool_result: Option<Json>,
    /// Why it was refused or failed.
    pub error: Option<String>,
    /// The rule that decided; `None` where the structure alone did.
    pub rule: Option<String>,
    /// Hash of the ledger entry that proves this receipt; `None` only where the ledger could not
    /// take one, and then the request was refused.
    pub evidence_hash: Option<Digest>,
    /// Number of that entry in the ledger, from 0.
    pub entry: Option<u64>,
}

impl Decision {
    /// The decision's name as it stands in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
            Self::Halt => "HALT",
        }
    }

    /// The decision with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Allow, Self::Deny, Self::Halt].into_iter().find(|d| d.name() == name)
    }
}

impl ReceiptStatus {
    /// The status's name as it stands in receipts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "ACCEPTED",
            Self::Rejected => "REJECTED",
            Self::Failed => "FAILED",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for ReceiptStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
