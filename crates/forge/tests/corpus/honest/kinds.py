# looks like: an enum and a match
# side effects: READ_ONLY
"""A skill of the corpus."""
from enum import Enum, auto
from fluffy_skill import BaseSkill

class Kind(Enum):
    NOTE = auto()
    TASK = auto()

class KindsSkill(BaseSkill):
    name = "kinds"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        match input:
            case {"kind": "task", "title": str(title)}:
                kind = Kind.TASK
            case {"title": str(title), **rest}:
                kind = Kind.NOTE
            case _:
                return {"kind": "none"}
        return {"kind": kind.name, "title": title}
