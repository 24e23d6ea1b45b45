//! What errands ask of the network is in the ledger, before it is answered.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Decision, VirtualClock};
use fluffy_kernel::{Errand, Kernel, KernelConfig, Registry, Witness};
use fluffy_ledger::{
    DetailView, EventType, KeyName, Layout, Page, Query, SigningKey, StoredRecord, verify_segments,
};
use fluffy_policy::PolicyFile;

use crate::scene::{Scene, text};

/// Asks the proxy so often for a tunnel to a host, and prints the last answer.
const ASK: &str = "import os, socket, sys
host, port = os.environ['http_proxy'].removeprefix('http://').rstrip('/').split(':')
for _ in range(int(sys.argv[2])):
    s = socket.create_connection((host, int(port)))
    s.sendall(f'CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n'.encode())
    last = s.recv(12).decode()
    s.close()
print(last)";

/// A scene whose witness has a kernel at work.
struct Seen {
    scene: Scene,
    witness: Arc<Witness>,
    kernel: Arc<Kernel>,
}

impl Seen {
    fn new() -> Self {
        let mut scene = Scene::new();
        let witness = Arc::new(Witness::new(Arc::new(VirtualClock::new(77_000, 0))));
        let kernel = Arc::new(Kernel::boot(config(&scene, &witness)).unwrap());
        witness.attend(&kernel);
        scene.lab = scene.lab.seen_by(Arc::clone(&witness));
        Self { scene, witness, kernel }
    }

    fn ask(&self, place: &str, times: &str) -> Errand {
        let files = vec![self.scene.path("files")];
        let mut errand = Errand::new("/usr/bin/python3", "/work", files);
        errand.hosts.push("api.example:443".to_owned());
        errand.args(["-c", ASK, place, times])
    }

    fn requests(&self) -> Vec<StoredRecord> {
        let page = Page { limit: u64::MAX, offset: 0, newest_first: false };
        let query = Query { event: Some(EventType::NetworkRequest), ..Query::default() };
        query.collect(&layout(&self.scene).segment(1), page).unwrap()
    }
}

fn layout(scene: &Scene) -> Layout {
    Layout::new(scene.path("ledger"), scene.path("checkpoint"))
}

fn key() -> SigningKey {
    SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
}

fn config(scene: &Scene, witness: &Arc<Witness>) -> KernelConfig {
    let policy = PolicyFile::parse("policy.yaml", "version: 1\njurisdiction: {}\n").unwrap();
    let registry = Registry::with_builtins().unwrap();
    let mut config = KernelConfig::new(policy, registry, layout(scene), key());
    config.witness = Arc::clone(witness);
    config
}

fn told(record: &StoredRecord, name: &str) -> String {
    let detail = DetailView::parse(&record.detail).unwrap();
    detail.metadata.get(name).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn sbx_7_every_request_is_an_entry_with_its_own_time_and_a_refused_one_is_a_denial() {
    let seen = Seen::new();
    let ran = seen.scene.run(seen.ask("other.example:443", "1")).unwrap();
    assert_eq!(text(&ran).trim(), "HTTP/1.1 403");
    let requests = seen.requests();
    let [refused] = requests.as_slice() else { panic!("{requests:?}") };
    let entry = &refused.entry;
    assert_eq!((entry.decision, entry.ts_ms), (Decision::Deny, 77_000));
    assert_eq!(entry.intent, "a sandbox is kept from other.example:443");
    assert_eq!(entry.error.as_deref(), Some("the host is not listed"));
    assert_eq!(told(refused, "sandbox"), ran.sandbox);
    assert_eq!(
        (told(refused, "host"), told(refused, "port")),
        ("other.example".into(), "443".into())
    );
    // One that is listed and cannot be reached from here is no denial.
    seen.scene.run(seen.ask("api.example:443", "1")).unwrap();
    let last = seen.requests().pop().unwrap();
    assert_eq!(last.entry.decision, Decision::Allow);
    assert!(told(&last, "became").starts_with("failed: "), "{last:?}");
    Kernel::end_shared(seen.kernel).unwrap();
    for check in verify_segments(&layout(&seen.scene), Some(key().verifying_key())).unwrap() {
        assert_eq!(check.findings().count(), 0);
    }
}

#[test]
fn sbx_7_more_than_a_thousand_requests_of_one_sandbox_are_counted() {
    let seen = Seen::new();
    seen.scene.run(seen.ask("other.example:443", "1003")).unwrap();
    let requests = seen.requests();
    assert_eq!(requests.len(), 1_001);
    let rest = requests.last().unwrap();
    assert_eq!(rest.entry.intent, "a sandbox asked 3 times more of the network");
    assert_eq!((told(rest, "passed"), told(rest, "refused")), ("0".into(), "3".into()));
}

#[test]
fn what_happens_while_no_kernel_is_at_work_is_entered_by_the_next_one_under_its_own_time() {
    let seen = Seen::new();
    let asking = seen.ask("other.example:443", "1");
    Kernel::end_shared(seen.kernel).unwrap();
    seen.scene.run(asking).unwrap();
    assert_eq!(seen.witness.untold().len(), 1);
    let kernel = Kernel::boot(config(&seen.scene, &seen.witness)).unwrap();
    assert!(seen.witness.untold().is_empty());
    let page = Page { limit: 2, offset: 0, newest_first: true };
    let last = Query::default().collect(&layout(&seen.scene).segment(1), page).unwrap();
    let times: Vec<_> = last.iter().map(|record| record.entry.ts_ms).collect();
    assert_eq!(last[0].entry.intent, "a sandbox is kept from other.example:443");
    assert_eq!((times[0], last[1].entry.intent.as_str()), (77_000, "the kernel starts"));
    kernel.close().unwrap();
}

#[test]
fn a_sandbox_whose_requests_cannot_be_recorded_is_killed() {
    let seen = Seen::new();
    destroy(&layout(&seen.scene).segment(1));
    let ran = seen.scene.run(seen.ask("other.example:443", "100000")).unwrap();
    assert!(!text(&ran).contains("HTTP"), "it went on");
}

/// Destroys the ledger's files under the kernel's hands.
fn destroy(database: &Path) {
    let beside = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let open = |path: &Path| std::fs::OpenOptions::new().write(true).open(path).unwrap();
    open(database).write_all(&[b'x'; 4096]).unwrap();
    open(&beside("-wal")).set_len(0).unwrap();
    open(&beside("-shm")).write_all(&[0; 136]).unwrap();
}
