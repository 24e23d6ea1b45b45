//! What the kernel knows of whoever sends a request. Nothing of it is taken from the request.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use fluffy_policy::{Peer, TokenId};

/// Who sends a request, as measured by whoever received it.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The process at the other end, by the system's word for it.
    pub peer: Option<Peer>,
    /// Tags of the sender's identity.
    pub tags: BTreeSet<String>,
    /// The token that was presented.
    pub token: Option<Presented>,
    /// The session's mode.
    pub mode: Option<String>,
    /// State of the test-first workflow.
    pub workflow_state: Option<String>,
}

/// A token as it is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presented {
    /// Its id.
    pub id: TokenId,
    /// The nonce of this call, larger than those of all calls before.
    pub nonce: NonZeroU64,
}
