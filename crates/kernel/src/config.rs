//! What a kernel is made of.

use std::sync::Arc;

use fluffy_base::{Clock, IdSource, KernelId, SystemClock, SystemIds};
use fluffy_ledger::{Layout, SigningKey};
use fluffy_policy::{PolicyFile, Rule};

use crate::{Registry, SessionStart, Strict, Variant};

/// What a kernel is made of.
pub struct KernelConfig {
    /// How strict it is.
    pub variant: Box<dyn Variant>,
    /// Who may ask for what.
    pub policy: PolicyFile,
    /// Rules beyond the policy file's.
    pub rules: Vec<Box<dyn Rule>>,
    /// The tools it knows.
    pub registry: Registry,
    /// Where its ledger lies.
    pub layout: Layout,
    /// The key that signs the ledger.
    pub key: SigningKey,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where ids and salts come from.
    pub ids: Arc<dyn IdSource>,
    /// Which session it boots into.
    pub session: SessionStart,
    /// A name for a new ledger's kernel; a fresh one otherwise.
    pub kernel_id: Option<KernelId>,
}

impl KernelConfig {
    /// A strict kernel with these tools, the machine's clock and randomness.
    pub fn new(policy: PolicyFile, registry: Registry, layout: Layout, key: SigningKey) -> Self {
        Self {
            variant: Box::new(Strict),
            policy,
            rules: Vec::new(),
            registry,
            layout,
            key,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            session: SessionStart::default(),
            kernel_id: None,
        }
    }
}
