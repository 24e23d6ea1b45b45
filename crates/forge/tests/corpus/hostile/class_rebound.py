# tries: give its name to another class; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Other:
    pass

class ClassReboundSkill(BaseSkill):
    name = "class_rebound"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


ClassReboundSkill = Other
