//! What running a skill costs over the same work in a bare interpreter.
//!
//! Both are started anew each time; the skill goes the whole way: the ledger is asked, the files are hashed, a sandbox is
//! made, and the record is on disk before the answer is there.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a bench makes its own project and starts the peer itself"
)]

#[path = "../tests/run/scene.rs"]
#[expect(dead_code, reason = "the tests of runs need more of it")]
mod scene;

use std::process::Command;

use divan::Bencher;
use serde_json::json;

const BODY: &str = "return {\"count\": sum(1 for _ in self.folder(\"notes\").iterdir())}";

const PEER: &str = "import json, pathlib, sys\n\
    count = sum(1 for _ in pathlib.Path(sys.argv[1]).iterdir())\nprint(json.dumps({\"count\": count}))";

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 40, sample_size = 1)]
fn bare_python(bencher: Bencher<'_, '_>) {
    let scene = scene::Scene::new();
    let notes = scene.file("notes");
    bencher.bench_local(|| {
        let ran = Command::new("/usr/bin/python3").args(["-c", PEER]).arg(&notes).output();
        assert_eq!(ran.unwrap().stdout, b"{\"count\": 1}\n");
    });
}

#[divan::bench(sample_count = 40, sample_size = 1)]
fn skill(bencher: Bencher<'_, '_>) {
    let stage = scene::Scene::probe("READ_ONLY", BODY).start();
    bencher.bench_local(|| assert_eq!(stage.gives(json!({})), json!({"count": 1})));
}

#[divan::bench(sample_count = 40, sample_size = 1)]
fn skill_that_writes(bencher: Bencher<'_, '_>) {
    let body = "(self.folder(\"notes\") / \"a\").write_text(\"x\")\nreturn {\"count\": 1}";
    let mut scene = scene::Scene::probe("FILE_WRITE", body);
    scene.agrees = true;
    let stage = scene.start();
    bencher.bench_local(|| assert_eq!(stage.gives(json!({})), json!({"count": 1})));
}
