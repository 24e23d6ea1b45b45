"""Write plugins for fluffy in Python. One file, no dependencies, Python 3.9 or later.

    from fluffy_plugin import Context, Plugin, ToolError

    plugin = Plugin("todo", "1.0.0")

    @plugin.tool("todo.find")
    def find(arguments: dict, context: Context) -> dict:
        return {"found": context.list_dir("src")}

    plugin.run()

Put this file beside your plugin: it is installed, hashed and reviewed with it. A plugin runs in a sandbox of its own.
What it sees of the project are the folders that its manifest lists; what it writes goes to a directory that nobody else
sees; it has no network but the hosts of its manifest. `print` goes to standard error, which the kernel keeps for the
reason of a failure.
"""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import subprocess
import sys
from types import MappingProxyType
from typing import Any, BinaryIO, Callable, Mapping, Sequence

API_VERSION = 1
MAX_FRAME = 4 << 20
OUTPUT = "/tmp/output"

Handler = Callable[[dict, "Context"], Any]


class ToolError(Exception):
    """What a tool could not do, in words for the model."""


class Refused(Exception):
    """The kernel does not take this plugin."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What became of a program."""

    code: int
    stdout: str
    stderr: str


@dataclasses.dataclass(frozen=True)
class Context:
    """What a tool can do. All of it is bounded by the plugin's sandbox."""

    plugin_name: str
    sandbox_id: str
    session_mode: str | None
    project: str | None
    reads: tuple[str, ...]
    capabilities: tuple[str, ...]
    env: Mapping[str, str]

    def read_file(self, path: str) -> str:
        """The text of a file of the project, or of one that this plugin wrote."""
        written = os.path.join(OUTPUT, self._plain(path))
        place = written if os.path.exists(written) else self._of_project(path)
        try:
            with open(place, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ToolError(f"`{path}` cannot be read: {error}") from error

    def write_file(self, path: str, content: str) -> None:
        """Writes into the plugin's own output directory: the project is changed by the model's own calls alone."""
        place = os.path.join(OUTPUT, self._plain(path))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(content)

    def list_dir(self, path: str) -> list[str]:
        """The names in a folder of the project, in order; those of folders end with `/`."""
        try:
            with os.scandir(self._of_project(path)) as entries:
                return sorted(e.name + ("/" if e.is_dir(follow_symlinks=False) else "") for e in entries)
        except OSError as error:
            raise ToolError(f"`{path}` cannot be listed: {error}") from error

    def file_exists(self, path: str) -> bool:
        """Whether there is a file or folder in what this plugin sees."""
        written = os.path.join(OUTPUT, self._plain(path))
        return os.path.exists(written) or (self.project is not None and os.path.exists(self._of_project(path)))

    def run(self, command: Sequence[str], *, cwd: str | None = None, stdin: str = "", timeout: float = 30.0) -> RunResult:
        """Runs a program in the plugin's sandbox: a list of words, never a line for a shell. Needs `shell.run`."""
        if "shell.run" not in self.capabilities:
            raise ToolError("this plugin runs no programs: its manifest does not ask for `shell.run`")
        if isinstance(command, str) or not command:
            raise ToolError("a command is a list of words")
        at = self._of_project(cwd) if cwd is not None else "/tmp"
        try:
            done = subprocess.run(  # noqa: S603
                list(command), cwd=at, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolError(f"`{command[0]}` did not run: {error}") from error
        return RunResult(done.returncode, done.stdout, done.stderr)

    def _of_project(self, path: str) -> str:
        if self.project is None:
            raise ToolError("this plugin sees nothing of the project: its manifest lists no `reads`")
        return os.path.join(self.project, self._plain(path))

    @staticmethod
    def _plain(path: str) -> str:
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or "\0" in path:
            raise ToolError(f"`{path}` leads out of the project")
        return os.path.join(*[part for part in parts if part not in ("", ".")] or ["."])


class Plugin:
    """A plugin with its tools."""

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version
        self.handlers: dict[str, Handler] = {}

    def tool(self, name: str) -> Callable[[Handler], Handler]:
        """Makes a function the handler of a tool of the manifest."""

        def register(handler: Handler) -> Handler:
            if name in self.handlers:
                raise ValueError(f"there are two handlers for {name}")
            self.handlers[name] = handler
            return handler

        return register

    def run(self) -> None:
        """Speaks with the kernel until it hangs up."""
        source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
        # Whatever is printed must not stand between messages.
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        welcome = self._handshake(source, sink)
        while (message := _receive(source)) is not None:
            _send(sink, self._answer(message, welcome))

    def _handshake(self, source: BinaryIO, sink: BinaryIO) -> dict:
        hello = {"plugin_name": self.name, "plugin_version": self.version, "syscall_api_version": API_VERSION}
        _send(sink, {"type": "request", "id": 1, "method": "handshake", "params": hello})
        answer = _receive(source)
        if answer is None:
            raise Refused("the kernel hung up")
        if "error" in answer:
            raise Refused(answer["error"].get("message", "no reason was given"))
        return answer["result"]

    def _answer(self, message: dict, welcome: dict) -> dict:
        answer: dict = {"type": "response", "id": message.get("id")}
        params = message.get("params") or {}
        handler = self.handlers.get(params.get("tool"))
        if message.get("method") != "tool.call" or handler is None:
            answer["error"] = _error("unknown_method", "this plugin has no such tool")
            return answer
        context = Context(
            plugin_name=self.name,
            sandbox_id=welcome.get("sandbox_id", ""),
            session_mode=params.get("session_mode"),
            project=welcome.get("project"),
            reads=tuple(welcome.get("reads") or ()),
            capabilities=tuple(welcome.get("capabilities") or ()),
            env=MappingProxyType(dict(os.environ)),
        )
        try:
            answer["result"] = handler(params.get("arguments") or {}, context)
            json.dumps(answer["result"], allow_nan=False)
        except ToolError as error:
            answer.pop("result", None)
            answer["error"] = _error("denied", str(error))
        except Exception as error:  # noqa: BLE001
            answer.pop("result", None)
            answer["error"] = _error("internal", f"{type(error).__name__}: {error}")
        return answer


def _error(code: str, message: str) -> dict:
    return {"code": code, "message": message[:2000], "retryable": False}


def _receive(source: BinaryIO) -> dict | None:
    header = source.read(4)
    if len(header) < 4:
        return None
    (length,) = struct.unpack(">I", header)
    payload = source.read(length)
    return json.loads(payload) if len(payload) == length else None


def _send(sink: BinaryIO, message: dict) -> None:
    payload = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    if len(payload) > MAX_FRAME:
        small = {"type": "response", "id": message.get("id")}
        small["error"] = _error("too_large", f"the result has more than {MAX_FRAME} bytes")
        payload = json.dumps(small).encode()
    sink.write(struct.pack(">I", len(payload)) + payload)
    sink.flush()
