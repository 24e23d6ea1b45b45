//! What is handed to the ledger to remember.

use fluffy_base::{Decision, Digest, KernelState};

use crate::{Blob, Category, Detail, EventType, LedgerError};

/// The largest time that is exact in JSON; later ones are recorded as this one.
const MAX_TIME: u64 = (1 << 53) - 1;

/// The largest record, in bytes of its texts and its input.
const MAX_BYTES: usize = 64 << 20;

/// One thing to remember. The ledger adds its place in the chain.
#[derive(Debug, Clone)]
pub struct Record {
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// Id of the request, or the name of an event of the kernel's own.
    pub request_id: String,
    /// Who asked.
    pub actor: String,
    /// What for.
    pub intent: String,
    /// What was decided.
    pub decision: Decision,
    /// The kernel's state before.
    pub state_from: KernelState,
    /// The kernel's state after.
    pub state_to: KernelState,
    /// The tool that was asked for.
    pub tool_name: Option<String>,
    /// Hash of its parameters' canonical text.
    pub params_hash: Option<Digest>,
    /// Why it was refused or failed.
    pub error: Option<String>,
    /// Everything else.
    pub detail: Detail,
    /// The full input, kept privately.
    pub input: Option<Blob>,
}

/// Where a record ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its number, from 0.
    pub seq: u64,
    /// Its hash.
    pub entry_hash: Digest,
}

impl Record {
    /// An event of the kernel's own.
    pub fn event(
        ts_ms: u64,
        intent: &str,
        (state_from, state_to): (KernelState, KernelState),
        detail: Detail,
    ) -> Self {
        Self {
            ts_ms,
            request_id: detail.event.name().to_uppercase(),
            actor: "SYSTEM".to_owned(),
            intent: intent.to_owned(),
            decision: Decision::Allow,
            state_from,
            state_to,
            tool_name: None,
            params_hash: None,
            error: None,
            detail,
            input: None,
        }
    }

    /// Whether the record must be on disk before the caller goes on: security events, refusals,
    /// halts, what becomes of the ledger's own files, and the decision before an effect.
    pub(crate) fn must_be_durable(&self) -> bool {
        match self.decision {
            Decision::Deny | Decision::Halt => true,
            Decision::Allow => {
                let category = self.detail.event.category();
                matches!(category, Category::Security | Category::Storage)
                    || self.detail.event == EventType::ToolExecute
            }
        }
    }

    /// Refuses what the database could not hold, before it stands in the way of other records.
    pub(crate) fn check_size(&self) -> Result<(), LedgerError> {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let detail = &self.detail;
        let bytes = [
            self.request_id.len(),
            self.actor.len(),
            self.intent.len(),
            optional(&self.tool_name),
            optional(&self.error),
            optional(&detail.workflow_state),
            optional(&detail.rule),
            optional(&detail.capability_id),
            optional(&detail.deny_reason),
            optional(&detail.input_summary),
            optional(&detail.output_summary),
            optional(&detail.sandbox_id),
            detail.metadata.values().map(String::len).sum(),
            self.input.as_ref().map_or(0, crate::Blob::len),
        ]
        .into_iter()
        .sum();
        let limit = MAX_BYTES;
        if bytes > limit { Err(LedgerError::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    pub(crate) fn time(&self) -> u64 {
        self.ts_ms.min(MAX_TIME)
    }
}
