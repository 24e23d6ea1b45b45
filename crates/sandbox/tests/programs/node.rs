//! Node, with npm and its test runner.

use crate::scene::Scene;

const PACKAGE: &str = r#"{ "name": "small", "version": "1.0.0", "private": true, "scripts": { "test": "node --test" } }"#;

const TEST: &str = r#"
const test = require("node:test");
const assert = require("node:assert");
const http = require("node:http");
const { Worker } = require("node:worker_threads");
const { execFileSync } = require("node:child_process");

test("a server on localhost answers", async () => {
  const server = http.createServer((_, answer) => answer.end("hello"));
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const answer = await fetch(`http://localhost:${server.address().port}/`);
  assert.strictEqual(await answer.text(), "hello");
  await new Promise((closed) => server.close(closed));
});

test("a worker answers", async () => {
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage(42)", { eval: true });
  assert.strictEqual(await new Promise((answer) => worker.once("message", answer)), 42);
});

test("another program is started", () => {
  assert.strictEqual(execFileSync("echo", ["hi"], { encoding: "utf8" }), "hi\n");
});
"#;

#[test]
fn npm_test_passes_with_a_server_a_worker_and_a_program() {
    let scene = Scene::new(&[("package.json", PACKAGE), ("test/served.test.js", TEST)]);
    let done = scene.works("npm test 2>&1");
    assert!(done.out.contains("pass 3") && done.out.contains("fail 0"), "{}", done.out);
    assert!(done.changes().is_empty(), "{:?}", done.changes());
}
