# tries: set side effects in a default; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsInDefaultSkill(BaseSkill):
    name = "effects_in_default"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def show(self, text: str = (side_effect_class := "NETWORK")) -> str:
        return text

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
