# tries: put another class in the place of the base; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class BaseSkill:
    pass

class BaseRedefinedSkill(BaseSkill):
    name = "base_redefined"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
