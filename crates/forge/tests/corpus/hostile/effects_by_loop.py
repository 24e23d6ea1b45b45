# tries: set side effects by a loop; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsByLoopSkill(BaseSkill):
    name = "effects_by_loop"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"
    for side_effect_class in ("NETWORK",):
        pass

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
