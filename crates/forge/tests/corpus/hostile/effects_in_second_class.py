# tries: have a second class with the right side effects; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Declared:
    side_effect_class = "READ_ONLY"

class EffectsInSecondClassSkill(BaseSkill):
    name = "effects_in_second_class"
    description = "A skill of the corpus."
    side_effect_class = Declared.side_effect_class

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
