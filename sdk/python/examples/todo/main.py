"""Finds what was left to do in the comments of the project's sources."""

import re

from fluffy_plugin import Context, Plugin, ToolError

plugin = Plugin("todo", "1.0.0")

WORDS = ["TODO", "FIXME", "HACK", "XXX"]
MAX_BYTES = 1 << 20


def files(context: Context, folder: str):
    """Every file below a folder, in order."""
    for name in context.list_dir(folder):
        path = f"{folder}/{name}"
        if name.endswith("/"):
            yield from files(context, path.rstrip("/"))
        else:
            yield path


@plugin.tool("todo.find")
def find(arguments: dict, context: Context) -> dict:
    """Lists such comments with file and line."""
    words = arguments.get("words") or WORDS
    limit = arguments.get("limit", 200)
    wanted = re.compile(r"\b(" + "|".join(map(re.escape, words)) + r")\b[:\s]*(.*)")
    found: list[dict] = []
    for folder in context.reads:
        if not context.file_exists(folder):
            continue
        for path in files(context, folder):
            try:
                text = context.read_file(path)
            except ToolError:
                continue  # No text, or a link that leads elsewhere.
            if len(text) > MAX_BYTES:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if match := wanted.search(line):
                    if len(found) == limit:
                        return {"found": found, "more": True}
                    found.append({"path": path, "line": number, "word": match[1], "text": match[2].strip()[:200]})
    return {"found": found, "more": False}


if __name__ == "__main__":
    plugin.run()
