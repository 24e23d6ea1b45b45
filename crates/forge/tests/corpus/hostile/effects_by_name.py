# tries: set side effects by name; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsByNameSkill(BaseSkill):
    name = "effects_by_name"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


setattr(EffectsByNameSkill, "side_effect_class", "NETWORK")
