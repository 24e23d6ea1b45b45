"""Makes the packages that tests install, well-meant and hostile ones, as a directory for registry.py.

    packages.py DIRECTORY

The archives have the same bytes on every machine.
"""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import zipfile

# What an install script should not get at. It tells in its own folder what it got.
INSTALL_SCRIPT = """\
const { spawn } = require("child_process");
const fs = require("fs");
const net = require("net");
const path = require("path");

const home = process.env.HOME || "/";
const result = {};
const attempt = (name, action) => {
  try { result[name] = action() || "done"; } catch (error) { result[name] = error.code || String(error); }
};
const read = (file) => fs.readFileSync(file, "utf8");

attempt("write home", () => fs.writeFileSync(path.join(home, "owned"), "owned"));
attempt("npmrc", () => read(path.join(home, ".npmrc")));
attempt("passwd", () => read("/etc/passwd"));
attempt("fork", () => {
  const code = "setTimeout(() => {}, 60000)";
  const child = spawn(process.execPath, ["-e", code], { detached: true, stdio: "ignore" });
  child.unref();
  return `process ${child.pid}`;
});

const finish = () => {
  fs.writeFileSync(path.join(__dirname, "stolen.json"), JSON.stringify(result));
  process.exit(0);
};
const socket = net.connect(9, "127.0.0.1");
socket.on("connect", () => { result.connect = "connected"; finish(); });
socket.on("error", (error) => { result.connect = error.code; finish(); });
setTimeout(() => { result.connect = "no answer"; finish(); }, 5000);
"""

# Stands in for a test runner and claims that all is well.
FAKE_RUNNER = """\
#!/usr/bin/env node
console.log("# tests 1\\n# pass 1\\n# fail 0");
"""

# A source archive runs its own code when it is built.
SETUP_SCRIPT = """\
import os

with open(os.path.join(os.path.expanduser("~"), "builtpy-ran"), "w") as file:
    file.write("setup.py was executed")

from setuptools import setup

setup(name="builtpy", version="1.0", py_modules=["builtpy"])
"""


def file_member(name, text, mode=0o644):
    """A regular file of a tar archive."""
    member = tarfile.TarInfo(name)
    data = text.encode()
    member.size, member.mode = len(data), mode
    return member, data


def link_member(name, target):
    """A symbolic link of a tar archive."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = tarfile.SYMTYPE, target, 0o777
    return member, b""


def write_tar(path, members):
    """Writes a compressed tar archive. Names are written as they are, whatever they mean."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member, data in members:
            archive.addfile(member, io.BytesIO(data))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.write(raw.getvalue())


def write_npm(directory, name, version, files, members=(), **manifest):
    """Writes a package of npm."""
    manifest = {"name": name, "version": version, "license": "MIT", "main": "index.js", **manifest}
    all_members = [file_member("package/package.json", json.dumps(manifest, indent=2) + "\n")]
    for file, text in files.items():
        mode = 0o755 if text.startswith("#!") else 0o644
        all_members.append(file_member(f"package/{file}", text, mode))
    write_tar(directory / "npm" / name / f"{version}.tgz", [*all_members, *members])


def write_wheel(directory, name, version, source, requires=()):
    """Writes a wheel with one module, and the RECORD that it has to have."""
    info = f"{name}-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        "License: MIT",
        *(f"Requires-Dist: {other}" for other in requires),
    ]
    wheel = [
        "Wheel-Version: 1.0",
        "Generator: packages.py",
        "Root-Is-Purelib: true",
        "Tag: py3-none-any",
    ]
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "\n".join(wheel) + "\n",
    }
    record = ""
    for file, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        record += f"{file},sha256={digest.rstrip('=')},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = directory / "pypi" / f"{name}-{version}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            entry = zipfile.ZipInfo(file, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)


def write_npm_packages(directory):
    """Writes the packages of npm."""
    for version, greeting in [("1.0.0", "Hello"), ("1.1.0", "Good day")]:
        greet = f"exports.greet = (name) => `{greeting}, ${{name}}!`;\n"
        write_npm(directory, "greeter", version, {"index.js": greet})
    write_npm(
        directory,
        "needs-greeter",
        "1.0.0",
        {"index.js": 'exports.welcome = () => require("greeter").greet("world");\n'},
        dependencies={"greeter": "^1.0.0"},
    )
    write_npm(
        directory,
        "evil-script",
        "1.0.0",
        {"index.js": "exports.name = 'evil-script';\n", "install.js": INSTALL_SCRIPT},
        scripts={"install": "node install.js"},
    )
    hostile = [
        file_member("../../outside.txt", "outside of the package\n"),
        file_member("package/../../../outside-too.txt", "outside of the package\n"),
        link_member("package/link", "/etc/passwd"),
        link_member("package/up", "../../../../outside-by-link"),
    ]
    index = {"index.js": "exports.name = 'evil-archive';\n"}
    write_npm(directory, "evil-archive", "1.0.0", index, hostile)
    write_npm(directory, "expres", "1.0.0", {"index.js": "exports.name = 'expres';\n"})
    write_npm(
        directory,
        "runner-changer",
        "1.0.0",
        {"index.js": "exports.add = (a, b) => a + b;\n", "run.js": FAKE_RUNNER},
        bin={runner: "run.js" for runner in ("jest", "vitest", "node-test", "pytest")},
    )


def write_python_packages(directory):
    """Writes the packages of PyPI."""
    greet = 'def greet(name):\n    return f"Hello, {name}!"\n'
    write_wheel(directory, "greeterpy", "1.0", greet)
    welcome = 'from greeterpy import greet\n\n\ndef welcome():\n    return greet("world")\n'
    write_wheel(directory, "needsgreeterpy", "1.0", welcome, ["greeterpy>=1.0"])
    metadata = "Metadata-Version: 2.1\nName: builtpy\nVersion: 1.0\n"
    members = [
        file_member("builtpy-1.0/PKG-INFO", metadata),
        file_member("builtpy-1.0/setup.py", SETUP_SCRIPT),
        file_member("builtpy-1.0/builtpy.py", "NAME = 'builtpy'\n"),
    ]
    write_tar(directory / "pypi" / "builtpy-1.0.tar.gz", members)


def main():
    directory = pathlib.Path(sys.argv[1])
    write_npm_packages(directory)
    write_python_packages(directory)


if __name__ == "__main__":
    main()
