/**
 * Types for rule files of `fluffy`.
 *
 * A rule file is one TypeScript module that exports one function:
 *
 *     export default function (request: PolicyRequest): PolicyAnswer {
 *       return { action: "pass" };
 *     }
 *
 * The file's name without `.ts` is the rule's name. These types are global; for an editor, put this
 * file beside the rules or name it in a line `/// <reference path="policy.d.ts" />`.
 *
 * How answers count: deny beats require_review beats allow beats pass, over all rules of all kinds. A
 * request that nobody allows is denied. A rule that throws, runs too long or returns anything but a
 * `PolicyAnswer` has denied.
 *
 * What there is: the language and its own objects (`Array`, `Map`, `Set`, `RegExp`, `JSON`, `Math`,
 * `Date`, ...). What there is not: files, network, processes, timers, `console`, imports (but
 * `import type`), `eval` and `Function`, typed arrays, `Proxy`, weak references. Types must be
 * erasable: no `enum`, `namespace`, decorators, parameter properties, or modifiers of class members.
 *
 * The same request always gets the same answer: `Date.now()` and `new Date()` give the request's time,
 * local time is UTC, and `Math.random()` is seeded by the request. Each evaluation begins afresh:
 * nothing that a rule keeps in variables or changes in built-in objects is there the next time.
 *
 * Limits: 64 KiB of source, 1,000,000 steps (calls and turns of loops), 100 ms, 32 MiB of memory.
 */

/** A request that waits for a decision. */
interface PolicyRequest {
  /** The tool to run, such as `"fs.write"` or `"shell.run"`; null if the request only states an intent. */
  readonly syscall: string | null;
  /** What the request is about, relative to the project and normalised: `"src/a.rs"`; `"."` is all of it. */
  readonly paths: readonly string[];
  /** Who asks, such as `"model"` or `"user"`. */
  readonly actor: string;
  /** What the caller is trusted with: `"core_plugin"`, `"trusted_write"`, `"third_party"`. */
  readonly caller_tags: readonly string[];
  /** What for, in the asker's words. Do not trust it. */
  readonly intent: string;
  /** The session's mode, such as `"strict"`; null outside a session. */
  readonly session_mode: string | null;
  /** Where the test-first workflow stands, such as `"code_writing"`; null outside a task. */
  readonly workflow_state: string | null;
  /** The tool's parameters as the asker gave them; null if no tool is to run. */
  readonly params: { readonly [name: string]: PolicyValue } | null;
  /** The request's id. */
  readonly request_id: string;
  /** The request's time in milliseconds since the epoch. */
  readonly ts_ms: number;
}

/** A JSON value. */
type PolicyValue =
  | null
  | boolean
  | number
  | string
  | readonly PolicyValue[]
  | { readonly [name: string]: PolicyValue };

/** What a rule thinks of a request. No other members are allowed. */
type PolicyAnswer =
  /** No opinion: not this rule's concern. */
  | { action: "pass"; reason?: string }
  /** May proceed, unless another rule objects. */
  | { action: "allow"; reason?: string }
  /** May proceed once a person has agreed. The reason is shown, at most 500 characters of it. */
  | { action: "require_review"; reason: string }
  /** May not proceed. Say why, and what would be allowed instead. */
  | { action: "deny"; reason: string };
