//! What a rule file costs inside the host: the evaluation alone, and making the engine for it.
//!
//! `cargo bench --package fluffy-policy --bench extension`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use divan::Bencher;
use fluffy_policy::{Engine, LoadedRule};

const RULE: &str = include_str!("../../../examples/policy/lock-files.ts");
const INPUT: &str = r#"{"actor":"model","caller_tags":["core_plugin"],"intent":"update","params":{"content":"hello","path":"src/a.rs"},"paths":["src/a.rs"],"request_id":"r1","session_mode":"strict","syscall":"fs.write","ts_ms":1700000000000,"workflow_state":null}"#;

fn main() {
    divan::main();
}

fn loaded() -> (Engine, LoadedRule) {
    let engine = Engine::new(|| 0).unwrap();
    let rule = engine.load("locks", RULE).unwrap();
    (engine, rule)
}

#[divan::bench(sample_count = 200, sample_size = 10)]
fn evaluate_in_a_prepared_engine(bencher: Bencher<'_, '_>) {
    let (engine, rule) = loaded();
    let prepared = || engine.prepare(&rule).unwrap();
    bencher.with_inputs(prepared).bench_local_values(|prepared| prepared.evaluate_keeping(INPUT));
}

#[divan::bench(sample_count = 200, sample_size = 10)]
fn prepare_an_engine(bencher: Bencher<'_, '_>) {
    let (engine, rule) = loaded();
    bencher.bench_local(|| engine.prepare(&rule).unwrap());
}

#[divan::bench]
fn load_a_rule_file(bencher: Bencher<'_, '_>) {
    let (engine, _rule) = loaded();
    bencher.bench_local(|| engine.load("locks", RULE).unwrap());
}
