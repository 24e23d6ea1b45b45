# tries: make the types look away; seen by: policy
# side effects: READ_ONLY
# mypy: ignore-errors
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class TypesSilencedSkill(BaseSkill):
    name = "types_silenced"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
