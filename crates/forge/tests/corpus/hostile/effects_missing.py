# tries: say nothing about side effects; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsMissingSkill(BaseSkill):
    name = "effects_missing"
    description = "A skill of the corpus."

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
