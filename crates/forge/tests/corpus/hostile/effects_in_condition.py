# tries: set side effects under a condition; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsInConditionSkill(BaseSkill):
    name = "effects_in_condition"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"
    if len(name) > 3:
        side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
