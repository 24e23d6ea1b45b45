# tries: make a class that nobody reads; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class TypeOfThreeSkill(BaseSkill):
    name = "type_of_three"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        kind = type("Note", (), {"run": print})
        return {"kind": str(kind)}
