# tries: put side effects into a text; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsFormattedSkill(BaseSkill):
    name = "effects_formatted"
    description = "A skill of the corpus."
    side_effect_class = f"READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
