# tries: have other side effects than proposed; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsWrongSkill(BaseSkill):
    name = "effects_wrong"
    description = "A skill of the corpus."
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
