# tries: set side effects when it is made; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsInInitSkill(BaseSkill):
    name = "effects_in_init"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def __init__(self) -> None:
        self.side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
