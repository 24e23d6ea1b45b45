/** The version of what is said between the kernel and plugins. */
export const API_VERSION: number;

/** What a tool could not do, in words for the model. */
export class ToolError extends Error {}

/** The kernel does not take this plugin. */
export class Refused extends Error {}

export interface RunOpts {
  /** A folder of the project; the plugin's own temporary directory without it. */
  readonly cwd?: string;
  /** What the program reads. */
  readonly stdin?: string;
  /** How long it may take; 30 s without it. */
  readonly timeoutMs?: number;
}

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a tool can do. All of it is bounded by the plugin's sandbox. */
export interface ToolContext {
  /** Runs a program in the plugin's sandbox: a list of words, never a line for a shell. Needs `shell.run`. */
  run(command: readonly string[], opts?: RunOpts): Promise<RunResult>;
  /** The text of a file of the project, or of one that this plugin wrote. */
  readFile(path: string): Promise<string>;
  /** Writes into the plugin's own output directory: the project is changed by the model's own calls alone. */
  writeFile(path: string, content: string): Promise<void>;
  /** The names in a folder of the project, in order; those of folders end with `/`. */
  listDir(path: string): Promise<string[]>;
  /** Whether there is a file or folder in what this plugin sees. */
  fileExists(path: string): Promise<boolean>;
  readonly env: Readonly<Record<string, string>>;
  readonly sandboxId: string;
  readonly pluginName: string;
  readonly sessionMode: "strict" | "explore" | "debug" | null;
  /** The folders of the project that the manifest lists. */
  readonly reads: readonly string[];
  /** The calls whose rights the manifest asks for. */
  readonly capabilities: readonly string[];
}

export type ToolHandler = (
  args: Record<string, unknown>,
  context: ToolContext,
) => unknown | Promise<unknown>;

/** A plugin with its tools. */
export class Plugin {
  constructor(name: string, version: string);
  readonly name: string;
  readonly version: string;
  /** Gives a tool of the manifest its handler. */
  tool(name: string, handler: ToolHandler): this;
  /** Speaks with the kernel until it hangs up. */
  run(): Promise<void>;
}
