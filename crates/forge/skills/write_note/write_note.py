"""Writes a note into the vault.

A note is a Markdown file directly in the folder `notes`. Its front matter has three lines between two lines `---`, each
value as JSON, so that nothing in a title can add a line of its own:

    title: "Plans for May"
    tags: ["garden"]
    created: "2026-05-01"
"""

import hashlib
import json
import re
import unicodedata
from datetime import date, datetime, timezone
from pathlib import Path

from fluffy_skill import BaseSkill

LONGEST_NAME = 80
LARGEST = 256 * 1024


def name_of(title: str) -> str:
    """Gives the file of a title: plain letters, digits and `-`, and never nothing."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:LONGEST_NAME].strip("-")
    if not name:
        name = "note-" + hashlib.sha256(title.encode()).hexdigest()[:12]
    return f"{name}.md"


def title_in(text: str) -> str | None:
    """Gives the title in a note's front matter."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None
    for line in lines[1:]:
        key, colon, value = line.partition(":")
        if line.rstrip() == "---":
            return None
        if colon and key.strip() == "title":
            try:
                title = json.loads(value)
            except ValueError:
                return value.strip()
            return title if isinstance(title, str) else value.strip()
    return None


def date_of(text: object) -> str:
    """Checks a date; gives today's in UTC if there is none."""
    if text is None:
        return datetime.now(timezone.utc).date().isoformat()
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError("the date is written as YYYY-MM-DD")
    return date.fromisoformat(text).isoformat()


def tags_of(given: object) -> list[str]:
    """Checks the tags."""
    tags = given if isinstance(given, list) else []
    for tag in tags:
        if not isinstance(tag, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", tag):
            raise ValueError("a tag is made of lower-case letters, digits and `-`")
    return [str(tag) for tag in tags]


def may_replace(path: Path, title: str) -> None:
    """Refuses to replace anything but a note of the same title."""
    if path.is_symlink() or not path.is_file():
        raise ValueError(f"`{path.name}` is no note, and stays as it is")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"`{path.name}` is larger than a note, and stays as it is")
    if title_in(path.read_text(encoding="utf-8", errors="replace")) != title:
        raise ValueError(f"`{path.name}` is a note of another title, and stays as it is")


class WriteNoteSkill(BaseSkill):
    """Writes a note."""

    name = "write_note"
    description = (
        "Writes a note into the vault: a Markdown file with title, tags and date in front, named "
        "after its title. A note that is there already is only replaced if that is asked for."
    )
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Writes it, and gives the name of its file."""
        title, text = str(input["title"]).strip(), str(input["text"])
        if not title or any(unicodedata.category(letter) in ("Cc", "Cs") for letter in title):
            raise ValueError("a title is one line of text")
        front = {"title": title, "tags": tags_of(input.get("tags")), "created": date_of(input.get("created"))}
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items()]
        whole = "\n".join(["---", *lines, "---", "", text.rstrip("\n"), ""])
        path = self.folder("notes") / name_of(title)
        there = path.is_symlink() or path.exists()
        if there and input.get("overwrite") is not True:
            raise FileExistsError(f"there is a note `{path.name}` already: choose another title, or ask to overwrite it")
        if there:
            may_replace(path, title)
            path.write_text(whole, encoding="utf-8")
        else:
            with open(path, "x", encoding="utf-8") as out:
                out.write(whole)
        return {"note": path.name, "replaced": there}
