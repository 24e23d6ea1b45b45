//! What the tests share: kernels on ledgers of their own, tools that do as they are told.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use fluffy_base::{
    Decision, Json, KernelId, KernelReceipt, KernelRequest, ReceiptStatus, SeededIds, VirtualClock,
};
use fluffy_kernel::{Clerk, Effect, Kernel, KernelConfig, Registry, Tool, ToolError, ToolSpec};
use fluffy_ledger::{
    DetailView, KeyName, Layout, Page, Query, SigningKey, StoredRecord, verify_segments,
};
use fluffy_policy::{PolicyFile, Shape};
use fluffy_testkit::Project;
use serde_json::{Value, json};

/// Lets alice and béa run every tool there is.
pub(crate) const POLICY: &str = "
version: 1
jurisdiction:
  allowed_actors: [alice, béa]
  allowed_tools: ['*']
";

/// A key of a known service, and what is left of it.
pub(crate) const SECRET: &str = "sk-abcdefghijklmnop1234";

/// A place for one kernel after another, on the same ledger.
pub(crate) struct Lab {
    project: Project,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { project: Project::new().unwrap() }
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.project.state().join("ledger"), self.project.state().join("checkpoint"))
    }

    /// What a kernel that repeats itself is made of, with [`POLICY`] and these tools.
    pub(crate) fn config(&self, tools: Vec<Probe>) -> KernelConfig {
        self.config_with(POLICY, tools)
    }

    pub(crate) fn config_with(&self, policy: &str, tools: Vec<Probe>) -> KernelConfig {
        let policy = PolicyFile::parse("policy.yaml", policy).unwrap();
        let mut registry = Registry::with_builtins().unwrap();
        for tool in tools {
            registry.register(Box::new(tool)).unwrap();
        }
        let mut config = KernelConfig::new(policy, registry, self.layout(), key());
        config.clock = Arc::new(VirtualClock::new(1_000, 5));
        config.ids = Arc::new(SeededIds::new(7));
        config.kernel_id = KernelId::named("kernel-test");
        config
    }

    pub(crate) fn boot(&self, tools: Vec<Probe>) -> Kernel {
        Kernel::boot(self.config(tools)).unwrap()
    }

    /// A path beside the ledger, for whatever a test writes.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.project.path(name)
    }

    #[expect(clippy::disallowed_methods, reason = "a test writes files of its own")]
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "a test removes files of its own")]
    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.file(name)).unwrap();
    }

    /// The database of the first segment.
    pub(crate) fn database(&self) -> PathBuf {
        self.layout().segment(1)
    }

    pub(crate) fn entries(&self) -> Vec<StoredRecord> {
        let page = Page { limit: u64::MAX, offset: 0, newest_first: false };
        Query::default().collect(&self.database(), page).unwrap()
    }

    pub(crate) fn last(&self) -> StoredRecord {
        self.entries().pop().unwrap()
    }

    /// Every segment holds at every level, and no intent is left without its outcome.
    pub(crate) fn verify(&self) {
        let checks = verify_segments(&self.layout(), Some(key().verifying_key())).unwrap();
        assert!(!checks.is_empty());
        for check in checks {
            let findings: Vec<_> = check.findings().map(ToString::to_string).collect();
            assert_eq!(findings, Vec::<String>::new());
            assert_eq!(check.protocol.unwrap().open_intents, Vec::<u64>::new());
        }
    }
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
}

type Run = Box<dyn Fn(&Json) -> Result<Value, ToolError> + Send + Sync>;

/// A tool that does as it is told; it takes a `text` and a number `n`.
pub(crate) struct Probe {
    name: &'static str,
    effect: Effect,
    run: Run,
}

impl Probe {
    pub(crate) fn pure(
        name: &'static str,
        run: impl Fn(&Json) -> Result<Value, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, effect: Effect::None, run: Box::new(run) }
    }

    pub(crate) fn effect(
        name: &'static str,
        run: impl Fn(&Json) -> Result<Value, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, effect: Effect::Some, run: Box::new(run) }
    }
}

impl Tool for Probe {
    fn spec(&self) -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": { "text": {}, "n": { "type": "number" } },
            "additionalProperties": false,
        });
        ToolSpec {
            name: self.name.into(),
            summary: "Does as it is told".into(),
            schema,
            effect: self.effect,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, _: &dyn Clerk) -> Result<Value, ToolError> {
        (self.run)(params)
    }
}

/// Counts how often tools ran.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU64>);

impl Runs {
    pub(crate) fn add(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// A tool that changes nothing and counts its runs.
    pub(crate) fn pure(&self, name: &'static str) -> Probe {
        let runs = self.clone();
        Probe::pure(name, move |_| Ok(json!(runs.add())))
    }

    /// A tool with an effect that counts its runs.
    pub(crate) fn effect(&self, name: &'static str) -> Probe {
        let runs = self.clone();
        Probe::effect(name, move |_| Ok(json!(runs.add())))
    }
}

/// A way for a tool, a rule or a clock to reach the kernel that it is part of.
#[derive(Clone, Default)]
pub(crate) struct Reach(Arc<OnceLock<Weak<Kernel>>>);

impl Reach {
    pub(crate) fn connect(&self, kernel: Kernel) -> Arc<Kernel> {
        let kernel = Arc::new(kernel);
        self.0.set(Arc::downgrade(&kernel)).unwrap();
        kernel
    }

    pub(crate) fn kernel(&self) -> Arc<Kernel> {
        self.0.get().unwrap().upgrade().unwrap()
    }
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

/// Alice's request for a tool.
pub(crate) fn call(id: &str, tool: &str, params: &str) -> KernelRequest {
    KernelRequest::call(id, "alice", "a reason", tool, json(params))
}

pub(crate) fn echo(id: &str) -> KernelRequest {
    call(id, "echo", r#"{"text":"hi"}"#)
}

/// Decision and status.
pub(crate) fn ends(receipt: &KernelReceipt) -> (Decision, ReceiptStatus) {
    (receipt.decision, receipt.status)
}

pub(crate) const ALLOWED: (Decision, ReceiptStatus) = (Decision::Allow, ReceiptStatus::Accepted);
pub(crate) const DENIED: (Decision, ReceiptStatus) = (Decision::Deny, ReceiptStatus::Rejected);
pub(crate) const HALTED: (Decision, ReceiptStatus) = (Decision::Halt, ReceiptStatus::Rejected);
/// A tool that ran and failed.
pub(crate) const FAILED: (Decision, ReceiptStatus) = (Decision::Allow, ReceiptStatus::Failed);
/// A tool that could not take its parameters.
pub(crate) const UNFIT: (Decision, ReceiptStatus) = (Decision::Deny, ReceiptStatus::Failed);

pub(crate) fn error(receipt: &KernelReceipt) -> &str {
    receipt.error.as_deref().unwrap()
}

pub(crate) fn detail(record: &StoredRecord) -> DetailView<'_> {
    DetailView::parse(&record.detail).unwrap()
}
