# tries: set side effects among others; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsInTupleSkill(BaseSkill):
    name, side_effect_class = "effects_in_tuple", "READ_ONLY"
    description = "A skill of the corpus."

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
