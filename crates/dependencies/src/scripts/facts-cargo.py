# Prints what `cargo metadata` tells of packages: licence, and whether a build script runs.
import json, sys

facts = {}
for package in json.load(open(sys.argv[1]))["packages"]:
    if package.get("source"):
        scripts = any("custom-build" in target["kind"] for target in package["targets"])
        facts[f'{package["name"]}@{package["version"]}'] = {"licence": package.get("license"), "scripts": scripts}
print(json.dumps(facts))
