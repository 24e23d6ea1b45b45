// Makes a lock file one that `npm ci` can install without a registry. Runs on a copy that nobody keeps.
//
// Every package gets an address, where npm was told to leave addresses out: with one, npm takes the archive out of its cache by
// its hash. An optional package that npm left out of the lock file, because it could not be had when it was written, is asked
// for no more: npm writes such lock files and then refuses them.
const fs = require("fs");

const lock = JSON.parse(fs.readFileSync("package-lock.json", "utf8"));
const packages = lock.packages || {};

// Whether a package that stands at a path finds another one, there or above.
function finds(path, name) {
  for (let folder = path; ; folder = folder.slice(0, Math.max(folder.lastIndexOf("node_modules/") - 1, 0))) {
    if (packages[`${folder ? folder + "/" : ""}node_modules/${name}`]) return true;
    if (!folder) return false;
  }
}

for (const [path, entry] of Object.entries(packages)) {
  for (const name of Object.keys((path && entry.optionalDependencies) || {})) {
    if (!finds(path, name)) delete entry.optionalDependencies[name];
  }
  const at = path.lastIndexOf("node_modules/");
  if (at < 0 || entry.link || entry.inBundle || entry.resolved || !entry.integrity) continue;
  const name = entry.name || path.slice(at + 13);
  entry.resolved = `https://registry.npmjs.org/${name}/-/${name.split("/").pop()}-${entry.version}.tgz`;
}
fs.writeFileSync("package-lock.json", JSON.stringify(lock));
