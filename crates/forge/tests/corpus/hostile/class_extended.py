# tries: be extended by what is run; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ClassExtendedSkill(BaseSkill):
    name = "class_extended"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


class Real(ClassExtendedSkill):
    pass
