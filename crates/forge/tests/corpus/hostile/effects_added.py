# tries: add to side effects; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsAddedSkill(BaseSkill):
    name = "effects_added"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"
    side_effect_class += ""

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
