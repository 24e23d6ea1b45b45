# tries: set side effects after the class; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsAfterwardsSkill(BaseSkill):
    name = "effects_afterwards"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


EffectsAfterwardsSkill.side_effect_class = "NETWORK"
