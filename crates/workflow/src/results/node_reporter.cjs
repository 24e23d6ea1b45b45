// Reports node:test's results as JSON lines. Node's own reporters do not name the file of a test that
// passed; the events do, in Node 18.15 and later. The last line tells that nothing is missing.
//
// It is also loaded into every process that runs a file of tests, where it notes that the file came to its
// end: a file of plain assertions has passed then, and has not if it was left by `process.exit`.
const { createHash } = require("node:crypto");
const { existsSync, writeFileSync } = require("node:fs");
const { join, resolve } = require("node:path");
const { isMainThread } = require("node:worker_threads");

const note = (file) => join(__dirname, "ended-" + createHash("sha256").update(resolve(file)).digest("hex"));

if (process.env.NODE_TEST_CONTEXT && process.argv[1] && isMainThread) {
  const file = process.argv[1];
  process.once("beforeExit", () => writeFileSync(note(file), ""));
}

module.exports = async function* report(source) {
  const given = (mark) => mark !== undefined && mark !== false;
  for await (const { type, data } of source) {
    if (type === "test:stderr") {
      yield JSON.stringify({ result: "stderr", file: data.file ?? null, message: data.message }) + "\n";
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    const error = data.details.error;
    const cause = error && error.cause;
    yield JSON.stringify({
      result: type === "test:pass" ? "pass" : "fail",
      file: data.file ?? null,
      name: data.name,
      nesting: data.nesting,
      suite: data.details.type === "suite",
      skipped: given(data.skip) || given(data.todo),
      ended: type === "test:pass" && data.nesting === 0 && Boolean(data.file) && existsSync(note(data.file)),
      failure: error ? String(error.failureType ?? "") : null,
      message: error ? String((cause && cause.message) ?? cause ?? error.message) : null,
    }) + "\n";
  }
  yield '{"result":"end"}\n';
};
