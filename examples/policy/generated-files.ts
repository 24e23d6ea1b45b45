/// <reference path="../../crates/policy/src/extension/policy.d.ts" />

// Generated files are not written by hand, and commits outside working hours wait for a person.
//
// What a generator writes is changed by changing its source. And nobody is there at night to notice
// that a commit went wrong: hours are UTC, so that a decision replays the same anywhere.

const GENERATED = [/\.(gen|generated|pb)\.[a-z]+$/, /_pb2?\.py$/, /(^|\/)(generated|__generated__)\//];
const HOURS = { from: 6, until: 18 } as const;

type Change = "fs.write" | "fs.edit" | "fs.delete";

function isChange(syscall: string | null): syscall is Change {
  return syscall === "fs.write" || syscall === "fs.edit" || syscall === "fs.delete";
}

export default function (request: PolicyRequest): PolicyAnswer {
  if (isChange(request.syscall)) {
    const made = request.paths.find((path) => GENERATED.some((pattern) => pattern.test(path)));
    if (made !== undefined && !request.caller_tags.includes("trusted_write")) {
      return { action: "deny", reason: `${made} is generated: change its source and run the generator` };
    }
  }

  if (request.syscall === "git.commit") {
    const now = new Date();
    const weekend = now.getUTCDay() === 0 || now.getUTCDay() === 6;
    const hour = now.getUTCHours();
    if (weekend || hour < HOURS.from || hour >= HOURS.until) {
      return { action: "require_review", reason: "a commit outside working hours" };
    }
  }
  return { action: "pass" };
}
