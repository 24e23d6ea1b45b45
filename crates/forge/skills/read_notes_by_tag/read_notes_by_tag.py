"""Reads the notes that have a tag."""

import json
from dataclasses import dataclass
from pathlib import Path

from fluffy_skill import BaseSkill

LARGEST = 256 * 1024
MOST_NOTES = 5000
LONGEST_TEXT = 4000
USUAL = 20


@dataclass(frozen=True)
class Note:
    """A note of the vault."""

    name: str
    title: str
    tags: list[str]
    created: str
    text: str


def value_of(text: str) -> object:
    """Gives a value of the front matter: JSON, or what somebody wrote by hand."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    return value


def words_of(value: object) -> list[str]:
    """Gives the tags of a value: a list, or words with commas between them."""
    if isinstance(value, str):
        value = value.strip("[] ").split(",")
    if not isinstance(value, list):
        return []
    tags = [str(tag).strip().strip("\"'").lower() for tag in value]
    return [tag for tag in tags if tag]


def note_of(name: str, whole: str) -> Note:
    """Reads a note; one without front matter is called by the name of its file."""
    front: dict[str, object] = {}
    lines = whole.replace("\r\n", "\n").split("\n")
    ends = [number for number, line in enumerate(lines) if number > 0 and line.rstrip() == "---"]
    body = lines
    if lines[0].rstrip() == "---" and ends:
        body = lines[ends[0] + 1 :]
        for line in lines[1 : ends[0]]:
            key, colon, value = line.partition(":")
            if colon:
                front[key.strip()] = value_of(value)
    title, created = front.get("title"), front.get("created")
    return Note(
        name=name,
        title=str(title) if isinstance(title, (str, int)) else name.removesuffix(".md"),
        tags=words_of(front.get("tags")),
        created=str(created) if isinstance(created, (str, int)) else "",
        text="\n".join(body).strip("\n"),
    )


def notes_in(folder: Path) -> list[Note]:
    """Reads the notes of a folder by name: plain Markdown files directly in it, none through a link, none too large."""
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        plain = path.name.endswith(".md") and not path.name.startswith(".")
        if plain and not path.is_symlink() and path.is_file() and path.stat().st_size <= LARGEST:
            found.append(note_of(path.name, path.read_text(encoding="utf-8", errors="replace")))
        if len(found) > MOST_NOTES:
            raise ValueError(f"the vault has more than {MOST_NOTES} notes")
    return found


class ReadNotesByTagSkill(BaseSkill):
    """Reads notes by a tag."""

    name = "read_notes_by_tag"
    description = "Reads the notes of the vault that have a tag, the newest first."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Gives them, the newest first; those of one day by name."""
        tag, limit = str(input["tag"]).lower(), int(str(input.get("limit", USUAL)))
        found = [note for note in notes_in(self.folder("notes")) if tag in note.tags]
        found.sort(key=lambda note: note.created, reverse=True)
        told = [
            {
                "note": note.name,
                "title": note.title,
                "tags": note.tags,
                "created": note.created,
                "text": note.text[:LONGEST_TEXT],
                "cut": len(note.text) > LONGEST_TEXT,
            }
            for note in found[:limit]
        ]
        return {"found": len(found), "notes": told}
