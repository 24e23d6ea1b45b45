//! What a rule file costs the kernel: the whole way to the policy host and back.
//!
//! `cargo bench --package fluffy-cli --bench policy_host`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::disallowed_methods, reason = "requests come with pauses, as they do in life")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use fluffy_base::{Json, KernelRequest, KernelState};
use fluffy_kernel::{PolicyHost, RuleFile};
use fluffy_policy::{Facts, Verdict};
use fluffy_sandbox::{Native, NativeOptions};
use serde_json::json;

const RULE: &str = include_str!("../../../examples/policy/lock-files.ts");

fn main() {
    divan::main();
}

fn host() -> Arc<PolicyHost> {
    let file =
        RuleFile { name: "locks".to_owned(), path: "locks.ts".to_owned(), text: RULE.to_owned() };
    let program = Path::new(env!("CARGO_BIN_EXE_fluffy"));
    let native = Native::open(NativeOptions {
        program: program.to_owned(),
        state: Path::new(env!("CARGO_TARGET_TMPDIR")).join("policy-host-sandboxes"),
        path: vec![],
        env: vec![],
    });
    let native = native.unwrap();
    PolicyHost::start(Arc::new(native), program, vec![file], Arc::default()).unwrap()
}

fn request() -> KernelRequest {
    let params = Json::new(json!({ "path": "src/a.rs", "content": "hello" })).unwrap();
    KernelRequest::call("r1", "model", "update", "fs.write", params)
}

fn bench(bencher: Bencher<'_, '_>, pause: Duration) {
    let (host, request) = (host(), request());
    let rules = host.rules();
    let rule = rules.first().unwrap();
    let facts = Facts::new(&request, KernelState::Idle);
    bencher.with_inputs(|| std::thread::sleep(pause)).bench_local_values(|()| {
        let verdict = rule.judge(&facts);
        assert_eq!(verdict, Verdict::Pass);
    });
}

/// A request now and then: an engine is ready.
#[divan::bench(sample_count = 500, sample_size = 1)]
fn warm(bencher: Bencher<'_, '_>) {
    bench(bencher, Duration::from_millis(5));
}

/// Requests without a pause: each waits for its engine to be made.
#[divan::bench(sample_count = 200, sample_size = 20)]
fn without_a_pause(bencher: Bencher<'_, '_>) {
    bench(bencher, Duration::ZERO);
}
