//! A recorded session, the bundle of it, and the bundle taken apart so that tests can change it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use fluffy_base::{
    Decision, Digest, IdSource as _, KernelId, KernelState, SeededIds, SessionId, VirtualClock,
};
use fluffy_ledger::{
    BundleCheck, Detail, EventType, ExportOptions, Exported, KeyName, Layout, Ledger, LedgerConfig,
    Located, Origin, PolicyDecision, Record, RetentionOptions, Segment, Signer, SigningKey,
    VerifyingKey, export, verify_bundle,
};
use fluffy_testkit::Project;
use serde_json::Value;

/// The seed of the key that signs for the recorded session.
pub(crate) const OURS: [u8; 32] = [7; 32];
/// The seed of somebody else's key.
pub(crate) const THEIRS: [u8; 32] = [8; 32];

pub(crate) fn key(seed: &[u8; 32]) -> SigningKey {
    SigningKey::from_seed(KeyName::LEDGER, seed)
}

/// A closed ledger of one session.
pub(crate) struct Session {
    project: Project,
    pub(crate) layout: Layout,
    pub(crate) id: SessionId,
}

impl Session {
    /// A session of `size` entries, two at least, in an order that a kernel produces.
    pub(crate) fn of(size: u64) -> Self {
        let project = Project::new().unwrap();
        let layout =
            Layout::new(project.state().join("ledger"), project.path("remembered/checkpoint"));
        let ids = SeededIds::new(3);
        let session = Self { project, layout, id: SessionId::fresh(&ids).unwrap() };
        let mut ledger = session.open();
        session.start(&ledger);
        while ledger.size() < size {
            session.step(&ledger);
        }
        ledger.close().unwrap();
        session
    }

    pub(crate) fn open(&self) -> Ledger {
        self.open_at(1_700_000_000_000, RetentionOptions::default())
    }

    pub(crate) fn open_at(&self, now_ms: u64, retention: RetentionOptions) -> Ledger {
        let clock = Arc::new(VirtualClock::new(now_ms, 5));
        let (layout, origin) = (self.layout.clone(), self.origin());
        Ledger::open(LedgerConfig { layout, key: key(&OURS), origin, clock, retention }).unwrap()
    }

    /// Archives what there is, and takes it out of the database.
    pub(crate) fn archive(&self) {
        let retention = RetentionOptions { keep_days: 0, ..RetentionOptions::default() };
        let later = 1_700_000_000_000 + 86_400_000;
        let ledger = self.open_at(later, retention);
        assert_eq!(ledger.report().retained.archived.len(), 1);
        (0..40).for_each(|_| self.step(&ledger));
        drop(ledger);
        let retained = self.open_at(later, retention).report().retained.clone();
        assert!(retained.trimmed > 0 && retained.problem.is_none(), "{retained:?}");
    }

    fn origin(&self) -> Origin {
        Origin {
            kernel_id: KernelId::named("kernel-of-tests").unwrap(),
            session_id: self.id.clone(),
            variant: "strict",
            mode: Some("guided"),
            policy_digest: Some(Digest::of(b"policy")),
            engine: "0.1.0",
        }
    }

    fn start(&self, ledger: &Ledger) {
        let detail = Detail::new(self.origin(), EventType::KernelStart);
        let states = (KernelState::Booting, KernelState::Idle);
        ledger.append(Record::event(1_700_000_000_100, "boot", states, detail)).unwrap();
    }

    /// One more entry: by turns a read, a refusal, an effect about to start, and its result.
    pub(crate) fn step(&self, ledger: &Ledger) {
        let seq = ledger.size();
        let event = match seq % 4 {
            0 => EventType::ToolExecute,
            1 => EventType::ToolResult,
            _ => EventType::Syscall,
        };
        let mut detail = Detail::new(self.origin(), event);
        let path =
            if seq.is_multiple_of(2) { "src/päth 😀.rs" } else { "secret/\"key\"\\\n.pem" };
        detail.metadata.insert("path", path.to_owned());
        detail.input_summary = Some(format!("ändere \u{2028}{seq} 😀"));
        detail.policy_decision = Some(PolicyDecision::Allowed);
        let request = seq - u64::from(event == EventType::ToolResult);
        detail.decision_seq = (event == EventType::ToolResult).then_some(request);
        let states = (KernelState::Idle, KernelState::Idle);
        let mut record = Record::event(1_700_000_000_100 + seq, "fix é😀", states, detail);
        record.request_id = format!("r{request}");
        record.actor = if seq % 4 == 3 { "mällory" } else { "alice" }.to_owned();
        record.tool_name = Some(if seq % 4 == 2 { "fs.read" } else { "fs.write" }.to_owned());
        record.params_hash = Some(Digest::of(&request.to_be_bytes()));
        if seq % 4 == 3 {
            record.decision = Decision::Deny;
            record.error = Some("no \u{7f}rule \"allows\" it\t".to_owned());
            record.detail.policy_decision = Some(PolicyDecision::Denied);
        }
        ledger.append(record).unwrap();
    }

    pub(crate) fn segment(&self) -> Segment {
        Segment::active(&self.layout).unwrap().unwrap()
    }

    pub(crate) fn export(&self, options: &ExportOptions) -> (Vec<u8>, Exported) {
        let mut out = Vec::new();
        let exported = export(&self.segment(), &key(&OURS), options, &mut out).unwrap();
        (out, exported)
    }

    pub(crate) fn bundle(&self) -> Vec<u8> {
        let options = ExportOptions { exported_at_ms: 1_700_000_009_000, ..Default::default() };
        self.export(&options).0
    }

    pub(crate) fn parts(&self) -> Parts {
        Parts::of(&self.bundle())
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }
}

/// Calls `check` with one session at every size from 2 up to `largest`.
pub(crate) fn at_every_size(largest: u64, mut check: impl FnMut(u64, &Session)) {
    let session = Session::of(2);
    let ledger = session.open();
    for size in 2..=largest {
        check(size, &session);
        session.step(&ledger);
    }
}

/// Calls `check` with every number below `count`, on all processors.
pub(crate) fn in_parallel(count: usize, check: impl Fn(&Desk, usize) + Sync) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let check = &check;
            scope.spawn(move || {
                let desk = Desk::new();
                (worker..count).step_by(workers).for_each(|number| check(&desk, number));
            });
        }
    });
}

/// A file to which one bundle after another is written. In memory where that is possible.
pub(crate) struct Desk(tempfile::NamedTempFile);

impl Desk {
    pub(crate) fn new() -> Self {
        let in_memory = tempfile::NamedTempFile::new_in("/dev/shm");
        Self(in_memory.or_else(|_| tempfile::NamedTempFile::new()).unwrap())
    }

    pub(crate) fn put(&self, bundle: &[u8]) -> &std::path::Path {
        std::fs::write(self.0.path(), bundle).unwrap();
        self.0.path()
    }

    pub(crate) fn check(&self, bundle: &[u8]) -> BundleCheck {
        verify_bundle(self.put(bundle), None).unwrap()
    }

    pub(crate) fn check_pinned(&self, bundle: &[u8], pinned: &VerifyingKey) -> BundleCheck {
        verify_bundle(self.put(bundle), Some(pinned)).unwrap()
    }

    /// What was found, one line each; there must be something.
    pub(crate) fn refused(&self, bundle: &[u8]) -> String {
        let check = self.check(bundle);
        assert!(!check.findings.is_empty(), "{}", String::from_utf8_lossy(bundle));
        lines(&check.findings)
    }
}

pub(crate) fn lines(findings: &[Located]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// Whether nothing was found and `seed` signed all of it.
pub(crate) fn is_signed(check: &BundleCheck, seed: &[u8; 32]) -> bool {
    let signer = Signer::Key(Box::new(key(seed).verifying_key().clone()));
    check.findings.is_empty() && check.signer == signer
}

/// A bundle of ours taken apart; an item of a list is a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parts {
    /// Names and values in JSON, in order: what stands before the lists.
    pub(crate) head: Vec<(String, String)>,
    pub(crate) chained: Vec<String>,
    pub(crate) repeated: Vec<String>,
    pub(crate) details: Option<Vec<String>>,
    pub(crate) seal: Option<String>,
}

impl Parts {
    pub(crate) fn of(bundle: &[u8]) -> Self {
        let text = std::str::from_utf8(bundle).unwrap();
        let (head, rest) = text.split_once(",\"ledger_entries\":[\n").unwrap();
        let (chained, rest) = rest.split_once("\n],\"entries\":[\n").unwrap();
        let (repeated, rest) = rest.split_once("\n],\"details\":{\n").unwrap();
        let (details, rest) = rest.split_once("\n},\"seal\":").unwrap();
        let list = |text: &str| text.split(",\n").map(str::to_owned).collect::<Vec<_>>();
        let whole: Value = serde_json::from_str(&format!("{head}}}")).unwrap();
        let names =
            "version kernel_id variant exported_at_ms root_hash public_key checkpoint".split(' ');
        let parts = Self {
            head: names.map(|name| (name.to_owned(), whole[name].to_string())).collect(),
            chained: list(chained),
            repeated: list(repeated),
            details: Some(list(details)),
            seal: Some(rest.strip_suffix("}\n").unwrap().to_owned()),
        };
        assert_eq!(parts.bytes(), bundle, "taking apart and putting together changes nothing");
        parts
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let field = self.head.iter_mut().find(|(known, _)| known == name).unwrap();
        field.1 = value.to_owned();
    }

    pub(crate) fn strip(&mut self, name: &str) {
        match name {
            "seal" => self.seal = None,
            "details" => self.details = None,
            _ => self.head.retain(|(known, _)| known != name),
        }
    }

    fn sealed(&self) -> String {
        let head: Vec<_> =
            self.head.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let list = |lines: &[String]| format!("[\n{}\n]", lines.join(",\n"));
        let mut text = format!(
            "{{{},\"ledger_entries\":{},\"entries\":{}",
            head.join(","),
            list(&self.chained),
            list(&self.repeated)
        );
        if let Some(details) = &self.details {
            text += &format!(",\"details\":{{\n{}\n}}", details.join(",\n"));
        }
        text
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let seal = self.seal.as_ref().map_or_else(String::new, |seal| format!(",\"seal\":{seal}"));
        format!("{}{seal}}}\n", self.sealed()).into_bytes()
    }

    /// Seals what is there, as only the owner of the key can.
    pub(crate) fn seal(&mut self, seed: &[u8; 32]) {
        let hash = Digest::of(self.sealed().as_bytes());
        self.seal = Some(signed(&format!("fluffy-evidence-v1\n{hash}\n"), seed));
    }

    /// Gives the lists, the root and the key's text a new signature throughout.
    pub(crate) fn sign_all(&mut self, seed: &[u8; 32], root: &Digest) {
        self.set("public_key", &json(&key(seed).verifying_key().to_string()));
        let (size, root) = (self.chained.len(), STANDARD.encode(root.as_bytes()));
        let body = format!("fluffy/kernel-of-tests/1\n{size}\n{root}\n");
        self.set("checkpoint", &signed(&body, seed));
        self.seal(seed);
    }

    pub(crate) fn each_list(&mut self, mut change: impl FnMut(&mut Vec<String>)) {
        change(&mut self.chained);
        change(&mut self.repeated);
    }
}

/// A text as JSON.
pub(crate) fn json(text: &str) -> String {
    Value::from(text).to_string()
}

/// A signed note, as JSON.
pub(crate) fn signed(body: &str, seed: &[u8; 32]) -> String {
    let signature = ed25519_dalek::SigningKey::from_bytes(seed).sign(body.as_bytes());
    let line = [&key(seed).verifying_key().id()[..], &signature.to_bytes()].concat();
    json(&format!("{body}\n— fluffy-ledger {}\n", STANDARD.encode(line)))
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Dice(SeededIds);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededIds::new(seed))
    }

    pub(crate) fn below(&self, limit: usize) -> usize {
        let bytes = self.0.fresh().unwrap();
        usize::try_from(u128::from_be_bytes(bytes) % limit as u128).unwrap()
    }
}
