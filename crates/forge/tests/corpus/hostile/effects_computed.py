# tries: compute side effects; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsComputedSkill(BaseSkill):
    name = "effects_computed"
    description = "A skill of the corpus."
    side_effect_class = "".join(["READ", "_ONLY"])

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
