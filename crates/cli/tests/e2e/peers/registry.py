"""A small package registry for tests: npm's and PyPI's protocols for the archives in a directory.

    registry.py DIRECTORY

Prints the port that it listens on at 127.0.0.1 as its first line, and serves until its standard input is closed.

    DIRECTORY/npm/NAME/VERSION.tgz    packages of npm; NAME may be @scope/name; package.json is read out of the archive
    DIRECTORY/npm/NAME/VERSION.time   when that version was published, in ISO 8601; 2020-01-01 where there is none
    DIRECTORY/pypi/FILE.whl           wheels and source archives (.tar.gz) of PyPI
    DIRECTORY/swap/FILE               served instead of the archive FILE, under the hash of the real one
    DIRECTORY/log                     one line per request: method, path, authorization header or "-"
"""

import base64
import hashlib
import html
import http.server
import json
import pathlib
import re
import sys
import tarfile
import threading
import urllib.parse

PUBLISHED = "2020-01-01T00:00:00.000Z"
INSTALL_SCRIPTS = ("preinstall", "install", "postinstall")


def normalized(name):
    """A project's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_safe(name):
    """Whether a name from a request can be joined to a directory."""
    parts = name.split("/")
    return all(part not in ("", ".", "..") and "\0" not in part for part in parts)


def version_order(version):
    """Orders versions by their numbers."""
    return [int(part) if part.isdigit() else -1 for part in re.split(r"[.+-]", version)]


def manifest_of(archive):
    """The package.json of an archive, which lies in its top folder."""
    with tarfile.open(archive, "r:gz") as members:
        for member in members:
            if member.isfile() and re.fullmatch(r"[^/]+/package\.json", member.name):
                return json.loads(members.extractfile(member).read())
    raise ValueError(f"{archive} has no package.json")


def tarball_name(name, version):
    """The file name under which an archive of npm is served."""
    return f"{name.split('/')[-1]}-{version}.tgz"


class Registry:
    """The packages of a directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.lock = threading.Lock()

    def log(self, line):
        """Appends a line to the log, whole even if requests come at the same time."""
        with self.lock, open(self.directory / "log", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def served(self, name, archive):
        """The bytes of an archive, or those that are put in its place."""
        swapped = self.directory / "swap" / name
        return (swapped if swapped.is_file() else archive).read_bytes()

    def packument(self, name, base):
        """What npm is told of a package, or None."""
        folder = self.directory / "npm" / name
        archives = {path.name[: -len(".tgz")]: path for path in folder.glob("*.tgz")}
        if not archives:
            return None
        versions, times = {}, {"created": PUBLISHED, "modified": PUBLISHED}
        for version in sorted(archives, key=version_order):
            archive = archives[version]
            data = archive.read_bytes()
            manifest = manifest_of(archive)
            integrity = base64.b64encode(hashlib.sha512(data).digest()).decode()
            manifest["_id"] = f"{name}@{version}"
            manifest["hasInstallScript"] = any(
                script in manifest.get("scripts", {}) for script in INSTALL_SCRIPTS
            )
            manifest["dist"] = {
                "tarball": f"{base}/{name}/-/{tarball_name(name, version)}",
                "integrity": f"sha512-{integrity}",
                "shasum": hashlib.sha1(data).hexdigest(),
            }
            versions[version] = manifest
            time = archive.with_suffix(".time")
            times[version] = time.read_text().strip() if time.is_file() else PUBLISHED
        latest = list(versions)[-1]
        return {
            "_id": name,
            "name": name,
            "dist-tags": {"latest": latest},
            "versions": versions,
            "time": times,
        }

    def tarball(self, name, file):
        """An archive of npm, or None."""
        for archive in (self.directory / "npm" / name).glob("*.tgz"):
            if tarball_name(name, archive.name[: -len(".tgz")]) == file:
                return self.served(file, archive)
        return None

    def project_files(self, name):
        """The archives of a project of PyPI, by file name."""
        found = {}
        for path in sorted((self.directory / "pypi").glob("*")):
            match = re.match(r"(?P<name>.+?)-\d", path.name)
            if match and normalized(match["name"]) == normalized(name):
                found[path.name] = path
        return found

    def simple_page(self, name):
        """The page of a project of PyPI, or None."""
        files = self.project_files(name)
        if not files:
            return None
        lines = []
        for file, path in files.items():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f'<a href="/files/{file}#sha256={digest}">{html.escape(file)}</a><br>')
        return "<!DOCTYPE html>\n<html><body>\n" + "\n".join(lines) + "\n</body></html>\n"

    def archive_of_pypi(self, file):
        """A wheel or source archive, or None."""
        path = self.directory / "pypi" / file
        return self.served(file, path) if path.is_file() else None

    def answer(self, path, base):
        """Content type and bytes for a path, or None."""
        parts = urllib.parse.unquote(path).strip("/")
        if not is_safe(parts):
            return None
        if parts.startswith("simple/"):
            page = self.simple_page(parts[len("simple/") :])
            return page and ("text/html; charset=utf-8", page.encode())
        if parts.startswith("files/"):
            data = self.archive_of_pypi(parts[len("files/") :])
            return data and ("application/octet-stream", data)
        if "/-/" in parts:
            name, file = parts.split("/-/", 1)
            data = self.tarball(name, file)
            return data and ("application/octet-stream", data)
        packument = self.packument(parts, base)
        return packument and ("application/json", json.dumps(packument).encode())


def handler_for(registry):
    """A handler of requests to a registry."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self, status, kind, data):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def handle_request(self):
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            authorization = self.headers.get("Authorization") or "-"
            registry.log(f"{self.command} {self.path} {authorization}")
            path = urllib.parse.urlsplit(self.path).path
            base = f"http://{self.headers.get('Host', '127.0.0.1')}"
            found = registry.answer(path, base) if self.command in ("GET", "HEAD") else None
            if found:
                self.respond(200, *found)
            else:
                self.respond(404, "application/json", b'{"error":"not found"}')

        do_GET = do_HEAD = do_POST = do_PUT = handle_request

        def log_message(self, *_):
            """The registry keeps a log of its own."""

    return Handler


def main():
    registry = Registry(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_for(registry))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
