"""Makes the note of a day, once, and adds lines to it, each once."""

import json
import re
from datetime import date
from pathlib import Path

from fluffy_skill import BaseSkill

LARGEST = 256 * 1024


def day_of(text: str) -> str:
    """Checks that a text is a day of the calendar, in the one spelling that files are named by."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError("the date is written as YYYY-MM-DD")
    return date.fromisoformat(text).isoformat()


def there_is(path: Path) -> bool:
    """Tells whether the note is there; what is no note of ours is not touched."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(f"`{path.name}` is no note, and stays as it is")
    if path.exists() and path.stat().st_size > LARGEST:
        raise ValueError(f"`{path.name}` is larger than a note may be")
    return path.exists()


class CreateDailyNoteSkill(BaseSkill):
    """Keeps a note for every day."""

    name = "create_daily_note"
    description = (
        "Makes the note of a day in the vault, and adds a line to it. Doing it twice changes "
        "nothing the second time."
    )
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Makes the note if there is none, and adds the line if it is not there."""
        day = day_of(str(input["date"]))
        line = " ".join(str(input.get("line", "")).split())
        path = self.folder("notes") / f"{day}.md"
        there = there_is(path)
        front = [f"title: {json.dumps(day)}", 'tags: ["daily"]', f"created: {json.dumps(day)}"]
        text = "\n".join(["---", *front, "---", "", ""])
        if there:
            text = path.read_text(encoding="utf-8")
        added = bool(line) and f"- {line}" not in text.split("\n")
        if added:
            text = text if text.endswith("\n") else text + "\n"
            text += f"- {line}\n"
        if added or not there:
            path.write_text(text, encoding="utf-8")
        return {"note": path.name, "created": not there, "added": added}
