// @ts-check
/**
 * Write plugins for fluffy in TypeScript or JavaScript. One file, no dependencies, Node 18 or later and Deno.
 *
 *     import { Plugin } from "./fluffy_plugin.js";
 *
 *     const plugin = new Plugin("todo", "1.0.0");
 *     plugin.tool("todo.find", async (args, context) => ({ found: await context.listDir("src") }));
 *     await plugin.run();
 *
 * Put this file beside your plugin: it is installed, hashed and reviewed with it. Its types are in `fluffy_plugin.d.ts`.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { Buffer } from "node:buffer";

export const API_VERSION = 1;
const MAX_FRAME = 4 << 20;
const OUTPUT = "/tmp/output";

/** What a tool could not do, in words for the model. */
export class ToolError extends Error {}

/** The kernel does not take this plugin. */
export class Refused extends Error {}

/** @param {string} path */
function plain(path) {
  const parts = path.split("/");
  if (path.startsWith("/") || parts.includes("..") || path.includes("\0")) {
    throw new ToolError(`\`${path}\` leads out of the project`);
  }
  return join(...parts.filter((part) => part !== "" && part !== "."), ".");
}

/** @param {string} path */
async function isThere(path) {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}

/** What a tool can do. All of it is bounded by the plugin's sandbox. */
class Context {
  #project;

  constructor(welcome, name, mode) {
    this.#project = welcome.project ?? null;
    this.pluginName = name;
    this.sandboxId = welcome.sandbox_id ?? "";
    this.sessionMode = mode ?? null;
    this.reads = Object.freeze([...(welcome.reads ?? [])]);
    this.capabilities = Object.freeze([...(welcome.capabilities ?? [])]);
    this.env = Object.freeze({ ...process.env });
    Object.freeze(this);
  }

  async readFile(path) {
    const written = join(OUTPUT, plain(path));
    const place = (await isThere(written)) ? written : this.#ofProject(path);
    try {
      return await readFile(place, "utf8");
    } catch (error) {
      throw new ToolError(`\`${path}\` cannot be read: ${error.message}`);
    }
  }

  async writeFile(path, content) {
    const place = join(OUTPUT, plain(path));
    await mkdir(dirname(place), { recursive: true });
    await writeFile(place, content);
  }

  async listDir(path) {
    try {
      const entries = await readdir(this.#ofProject(path), { withFileTypes: true });
      return entries.map((entry) => entry.name + (entry.isDirectory() ? "/" : "")).sort();
    } catch (error) {
      if (error instanceof ToolError) throw error;
      throw new ToolError(`\`${path}\` cannot be listed: ${error.message}`);
    }
  }

  async fileExists(path) {
    if (await isThere(join(OUTPUT, plain(path)))) return true;
    return this.#project !== null && (await isThere(this.#ofProject(path)));
  }

  async run(command, opts = {}) {
    if (!this.capabilities.includes("shell.run")) {
      throw new ToolError("this plugin runs no programs: its manifest does not ask for `shell.run`");
    }
    if (!Array.isArray(command) || command.length === 0) throw new ToolError("a command is a list of words");
    const cwd = opts.cwd === undefined ? "/tmp" : this.#ofProject(opts.cwd);
    const options = { cwd, timeout: opts.timeoutMs ?? 30_000, maxBuffer: 16 << 20 };
    return await new Promise((resolve, reject) => {
      const child = execFile(command[0], command.slice(1), options, (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") {
          reject(new ToolError(`\`${command[0]}\` did not run: ${error.message}`));
        } else {
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
        }
      });
      child.stdin?.on("error", () => {});
      child.stdin?.end(opts.stdin ?? "");
    });
  }

  #ofProject(path) {
    if (this.#project === null) {
      throw new ToolError("this plugin sees nothing of the project: its manifest lists no `reads`");
    }
    return join(this.#project, plain(path));
  }
}

/** A plugin with its tools. */
export class Plugin {
  #handlers = new Map();

  /**
   * @param {string} name
   * @param {string} version
   */
  constructor(name, version) {
    this.name = name;
    this.version = version;
  }

  /** Gives a tool of the manifest its handler. */
  tool(name, handler) {
    if (this.#handlers.has(name)) throw new Error(`there are two handlers for ${name}`);
    this.#handlers.set(name, handler);
    return this;
  }

  /** Speaks with the kernel until it hangs up. */
  async run() {
    const write = process.stdout.write.bind(process.stdout);
    // Whatever is printed must not stand between messages.
    process.stdout.write = (...given) => process.stderr.write(...given);
    console.log = console.info = console.debug = console.error;
    const send = (message) => write(frame(message));
    const hello = { plugin_name: this.name, plugin_version: this.version, syscall_api_version: API_VERSION };
    send({ type: "request", id: 1, method: "handshake", params: hello });
    let welcome = null;
    for await (const message of messages(process.stdin)) {
      if (welcome === null) {
        if (message.error) throw new Refused(message.error.message);
        welcome = message.result;
      } else {
        send(await this.#answer(message, welcome));
      }
    }
  }

  async #answer(message, welcome) {
    const answer = { type: "response", id: message.id };
    const params = message.params ?? {};
    const handler = this.#handlers.get(params.tool);
    if (message.method !== "tool.call" || handler === undefined) {
      return { ...answer, error: fault("unknown_method", "this plugin has no such tool") };
    }
    try {
      const context = new Context(welcome, this.name, params.session_mode);
      const result = await handler(params.arguments ?? {}, context);
      return { ...answer, result: result ?? null };
    } catch (error) {
      const code = error instanceof ToolError ? "denied" : "internal";
      const words = error instanceof ToolError ? error.message : `${error?.name}: ${error?.message}`;
      return { ...answer, error: fault(code, words) };
    }
  }
}

function fault(code, message) {
  return { code, message: String(message).slice(0, 2000), retryable: false };
}

function frame(message) {
  let payload = Buffer.from(JSON.stringify(message));
  if (payload.length > MAX_FRAME) {
    const error = fault("too_large", `the result has more than ${MAX_FRAME} bytes`);
    payload = Buffer.from(JSON.stringify({ type: "response", id: message.id, error }));
  }
  const whole = Buffer.alloc(4 + payload.length);
  whole.writeUInt32BE(payload.length);
  payload.copy(whole, 4);
  return whole;
}

async function* messages(source) {
  let arrived = Buffer.alloc(0);
  for await (const chunk of source) {
    arrived = arrived.length === 0 ? chunk : Buffer.concat([arrived, chunk]);
    while (arrived.length >= 4) {
      const length = arrived.readUInt32BE();
      if (arrived.length < 4 + length) break;
      yield JSON.parse(arrived.toString("utf8", 4, 4 + length));
      arrived = arrived.subarray(4 + length);
    }
  }
}
