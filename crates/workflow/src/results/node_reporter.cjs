// Reports node:test's results as JSON lines. Node's own reporters do not name the file of a test that
// passed; the events do, in Node 18.15 and later. The last line tells that nothing is missing.
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
      failure: error ? String(error.failureType ?? "") : null,
      message: error ? String((cause && cause.message) ?? cause ?? error.message) : null,
    }) + "\n";
  }
  yield '{"result":"end"}\n';
};
