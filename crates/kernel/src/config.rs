//! What a kernel is made of.

use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{
    Clock, IdSource, KernelId, ProjectPath, SystemClock, SystemIds, SystemWaiter, Waiter,
};
use fluffy_ledger::{Layout, RetentionOptions, SigningKey};
use fluffy_policy::{Part, PolicyFile, Rule};

use crate::{Extensions, NoExtensions, Registry, Reviewer, SessionStart, Strict, Variant, Witness};

/// What a kernel is made of.
pub struct KernelConfig {
    /// How strict it is.
    pub variant: Box<dyn Variant>,
    /// Who may ask for what.
    pub policy: PolicyFile,
    /// Where the policy lies, for replacing it; nowhere if it came from elsewhere.
    pub policy_path: Option<PathBuf>,
    /// What makes rules of the policy's extension files.
    pub extensions: Box<dyn Extensions>,
    /// Parts of the system that lie inside the project, to be kept from requests.
    pub kept: Vec<(ProjectPath, Part)>,
    /// Who is asked where a rule wants a person; nobody, and such requests are refused.
    pub reviewer: Option<Box<dyn Reviewer>>,
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
    /// How long entries of the ledger are kept, and how much room they may take.
    pub retention: RetentionOptions,
    /// What waits before a read is tried again.
    pub waiter: Arc<dyn Waiter>,
    /// Where ids and salts come from.
    pub ids: Arc<dyn IdSource>,
    /// Where sessions keep their files: those to which nothing happened for long are put away at a start.
    pub sessions: Option<PathBuf>,
    /// Which session it boots into.
    pub session: SessionStart,
    /// Who sees what becomes of guests; the kernel writes it down.
    pub witness: Arc<Witness>,
    /// A name for a new ledger's kernel; a fresh one otherwise.
    pub kernel_id: Option<KernelId>,
}

impl KernelConfig {
    /// A strict kernel with these tools, the machine's clock and randomness.
    pub fn new(policy: PolicyFile, registry: Registry, layout: Layout, key: SigningKey) -> Self {
        Self {
            variant: Box::new(Strict),
            policy,
            policy_path: None,
            extensions: Box::new(NoExtensions),
            kept: Vec::new(),
            reviewer: None,
            rules: Vec::new(),
            registry,
            layout,
            key,
            clock: Arc::new(SystemClock),
            retention: RetentionOptions::default(),
            waiter: Arc::new(SystemWaiter),
            ids: Arc::new(SystemIds),
            sessions: None,
            session: SessionStart::default(),
            witness: Arc::default(),
            kernel_id: None,
        }
    }
}
