# tries: evaluate text through type hints; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import typing
from fluffy_skill import BaseSkill

class Note:
    text: "int"

class TypeHintsSkill(BaseSkill):
    name = "type_hints"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"hints": str(typing.get_type_hints(Note))}
