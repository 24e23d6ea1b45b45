//! What a request costs from the door to the receipt, beside the bare cost of recording it.
//!
//! `cargo bench --package fluffy-kernel`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use divan::Bencher;
use fluffy_base::{Digest, Json, KernelRequest};
use fluffy_kernel::{Kernel, KernelConfig, Registry};
use fluffy_ledger::{KeyName, Layout, SigningKey};
use fluffy_policy::PolicyFile;
use rusqlite::{Connection, params};
use serde_json::json;
use tempfile::TempDir;

fn main() {
    divan::main();
}

fn kernel() -> (TempDir, Kernel) {
    let dir = TempDir::new().unwrap();
    let policy = "jurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: [echo]\n";
    let policy = PolicyFile::parse("bench", policy).unwrap();
    let layout = Layout::new(dir.path().join("project"), dir.path().join("remembered"));
    let key = SigningKey::from_seed(KeyName::LEDGER, &[1; 32]);
    let registry = Registry::with_builtins().unwrap();
    let kernel = Kernel::boot(KernelConfig::new(policy, registry, layout, key)).unwrap();
    (dir, kernel)
}

fn request() -> KernelRequest {
    let params = Json::new(json!({ "text": "hello" })).unwrap();
    KernelRequest::call("request-000001", "alice", "say hello", "echo", params)
}

const LINE: &[u8] = br#"{"request_id":"request-000001","ts_ms":1,"actor":"alice","intent":"say hello","tool_call":{"name":"echo","params":{"text":"hello"}}}"#;
const BODY: [u8; 700] = [b'b'; 700];

#[divan::bench(sample_count = 50, sample_size = 500)]
fn bare_insert_and_two_hashes(bencher: Bencher<'_, '_>) {
    let dir = TempDir::new().unwrap();
    let connection = Connection::open(dir.path().join("bare.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
             CREATE TABLE t (seq INTEGER PRIMARY KEY, hash BLOB, body BLOB)",
        )
        .unwrap();
    let mut seq = 0_i64;
    bencher.bench_local(|| {
        seq += 1;
        let detail = Digest::of(&BODY);
        let entry = Digest::of_parts(&[detail.as_bytes(), &BODY]);
        connection
            .prepare_cached("INSERT INTO t VALUES (?1, ?2, ?3)")
            .unwrap()
            .execute(params![seq, entry.as_bytes(), BODY])
            .unwrap();
    });
}

#[divan::bench(sample_count = 50, sample_size = 500)]
fn submit_an_allowed_echo(bencher: Bencher<'_, '_>) {
    let (_dir, kernel) = kernel();
    bencher.bench_local(|| kernel.submit(request()));
}

#[divan::bench(sample_count = 50, sample_size = 500)]
fn submit_an_allowed_echo_as_json(bencher: Bencher<'_, '_>) {
    let (_dir, kernel) = kernel();
    bencher.bench_local(|| kernel.submit_json(LINE));
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn eight_threads_submit_8000(bencher: Bencher<'_, '_>) {
    let (_dir, kernel) = kernel();
    bencher.counter(divan::counter::ItemsCount::new(8000_u32)).bench_local(|| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| drop(kernel.submit(request()))));
            }
        });
    });
}
