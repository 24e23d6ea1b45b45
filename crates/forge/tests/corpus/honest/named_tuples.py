# looks like: _replace and _asdict are documented
# side effects: READ_ONLY
"""A skill of the corpus."""
from collections import namedtuple
from fluffy_skill import BaseSkill

Note = namedtuple("Note", ["title", "text"])

class NamedTuplesSkill(BaseSkill):
    name = "named_tuples"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        note = Note("a", "b")._replace(title="c")
        return dict(note._asdict())
