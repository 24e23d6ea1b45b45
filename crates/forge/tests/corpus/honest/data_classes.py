# looks like: dataclasses, typing and forward names
# side effects: READ_ONLY
"""A skill of the corpus."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, Optional
from fluffy_skill import BaseSkill

@dataclass(frozen=True)
class Note:
    title: str
    next: Optional["Note"] = None
    kind: Literal["a note", "a task"] = "a note"
    tags: "list[str]" = field(default_factory=list)
    size: Annotated[int, "in bytes (at most)"] = 0

class DataClassesSkill(BaseSkill):
    name = "data_classes"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        note = Note(title=str(input["title"]))
        return {"title": note.title, "kind": note.kind}
