// @ts-check
import { Plugin, ToolError } from "./fluffy_plugin.js";

const plugin = new Plugin("json-tools", "1.0.0");

/** @param {string} text @param {number} at */
function place(text, at) {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, column: at - before.lastIndexOf("\n") };
}

/**
 * The place that the parser names; the end of the text where it names none.
 * @param {string} text @param {string} message
 */
function where(text, message) {
  const said = /position (\d+)/.exec(message);
  return place(text, said === null ? text.length : Number(said[1]));
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
    return { valid: false, ...where(text, message), problem: message };
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
