"""Writes a note."""

from __future__ import annotations

import json
from datetime import date

from fluffy_skill import BaseSkill


class WriteNoteSkill(BaseSkill):
    """Writes a note."""

    name = "write_note"
    description = "Writes a note."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Writes it, and gives its name."""
        title = str(input["title"])
        path = self.folder("notes") / f"{date.today()}-{title}.md"
        path.write_text(json.dumps(title), encoding="utf-8")
        return {"path": path.name}
