//! What a warm call of a plugin's tool costs over its handler's own time, which here is next to nothing.
//!
//! The call goes the whole way: judged by the shipped policy, sent to the process in its sandbox, answered, checked and
//! recorded. `built_in` is the same way without a process.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench makes its own project"
)]

#[path = "../tests/plugins/scene.rs"]
#[expect(dead_code, reason = "the tests of plugins need more of it")]
mod scene;

use divan::Bencher;
use serde_json::json;

use scene::{Scene, handler, python};

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 100, sample_size = 20)]
fn built_in(bencher: Bencher<'_, '_>) {
    let scene = Scene::new();
    let stage = scene.start();
    bencher.bench_local(|| stage.call("echo", json!({ "text": "x" })).unwrap());
}

#[divan::bench(sample_count = 100, sample_size = 20)]
fn warm(bencher: Bencher<'_, '_>) {
    let scene = Scene::with(python("quick", "", &handler("quick", "return 'x'")));
    let stage = scene.start();
    stage.call("quick.try", json!({})).unwrap();
    bencher.bench_local(|| stage.call("quick.try", json!({ "text": "x" })).unwrap());
}

/// The folder that it sees is looked at before each call.
#[divan::bench(sample_count = 100, sample_size = 20)]
fn warm_with_a_folder(bencher: Bencher<'_, '_>) {
    let reads = "required_capabilities: [fs.read]\nreads: [src]\n";
    let scene = Scene::with(python("quick", reads, &handler("quick", "return 'x'")));
    let stage = scene.start();
    stage.call("quick.try", json!({})).unwrap();
    bencher.bench_local(|| stage.call("quick.try", json!({ "text": "x" })).unwrap());
}

/// With its sandbox, its interpreter and its handshake.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn first(bencher: Bencher<'_, '_>) {
    let scene = Scene::with(python("quick", "", &handler("quick", "return 'x'")));
    let stage = scene.start();
    bencher.bench_local(|| {
        stage.plugins.unload(&stage.kernel);
        stage.call("quick.try", json!({})).unwrap()
    });
}
