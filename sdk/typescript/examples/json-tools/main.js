// @ts-check
import { Plugin, ToolError } from "./fluffy_plugin.js";

const plugin = new Plugin("json-tools", "1.0.0");

/** @param {string} text @param {number} at */
function place(text, at) {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, column: at - before.lastIndexOf("\n") };
}

/**
 * Where a text stops being JSON; -1 if it does not. The parser's own words do not always say it.
 * @param {string} text
 */
function wrongAt(text) {
  let at = 0;
  const blank = /[ \t\n\r]*/y;
  const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
  const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
  const word = /true|false|null/y;
  const skip = (/** @type {RegExp} */ pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    at += found === null ? 0 : found[0].length;
    return found !== null;
  };
  const sign = (/** @type {string} */ wanted) => {
    skip(blank);
    const is = text[at] === wanted;
    at += is ? 1 : 0;
    return is;
  };
  const list = (/** @type {string} */ end, /** @type {() => boolean} */ item) => {
    if (sign(end)) return true;
    do {
      skip(blank);
      if (!item()) return false;
    } while (sign(","));
    return sign(end);
  };
  /** @type {(depth: number) => boolean} */
  const value = (depth) => {
    if (depth > 1000) return false;
    if (sign("{")) return list("}", () => skip(string) && sign(":") && value(depth + 1));
    if (sign("[")) return list("]", () => value(depth + 1));
    return skip(string) || skip(number) || skip(word);
  };
  return value(0) && skip(blank) && at === text.length ? -1 : at;
}

/** @param {unknown} value @returns {unknown} */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

plugin.tool("json_tools.check", (args) => {
  const text = String(args.text);
  try {
    JSON.parse(text);
    return { valid: true };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const at = wrongAt(text);
    return { valid: false, ...place(text, at < 0 ? text.length : at), problem: message };
  }
});

plugin.tool("json_tools.format", (args) => {
  try {
    return { text: JSON.stringify(sorted(JSON.parse(String(args.text))), null, 2) + "\n" };
  } catch (error) {
    throw new ToolError(error instanceof Error ? error.message : String(error));
  }
});

await plugin.run();
