# tries: set side effects a second time; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsAgainSkill(BaseSkill):
    name = "effects_again"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
