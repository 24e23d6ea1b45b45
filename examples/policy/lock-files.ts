/// <reference path="../../crates/policy/src/extension/policy.d.ts" />

// Lock files change together with their manifest, or a person looks at it.
//
// A model that edits `Cargo.lock` alone can pin a dependency to a version that nobody asked for, and
// reviewers tend to skip lock files. Deleting one is never needed.

const MANIFESTS: ReadonlyMap<string, readonly string[]> = new Map([
  ["Cargo.lock", ["Cargo.toml"]],
  ["package-lock.json", ["package.json"]],
  ["pnpm-lock.yaml", ["package.json"]],
  ["yarn.lock", ["package.json"]],
  ["poetry.lock", ["pyproject.toml"]],
  ["uv.lock", ["pyproject.toml"]],
  ["go.sum", ["go.mod"]],
]);

/** `"a/b/c"` becomes `["a/b/", "c"]`. */
function split(path: string): [folder: string, name: string] {
  const cut = path.lastIndexOf("/") + 1;
  return [path.slice(0, cut), path.slice(cut)];
}

export default function lockFiles(request: PolicyRequest): PolicyAnswer {
  const changes = ["fs.write", "fs.edit", "fs.delete"].includes(request.syscall ?? "");
  if (!changes) return { action: "pass" };

  for (const path of request.paths) {
    const [folder, name] = split(path);
    const manifests = MANIFESTS.get(name);
    if (manifests === undefined) continue;
    if (request.syscall === "fs.delete") {
      return { action: "deny", reason: `${path} is a lock file: let the package manager rewrite it` };
    }
    if (!manifests.some((manifest) => request.paths.includes(folder + manifest))) {
      return {
        action: "require_review",
        reason: `${path} changes without ${manifests.join(" or ")} beside it`,
      };
    }
  }
  return { action: "pass" };
}
