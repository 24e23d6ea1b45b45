# tries: inherit from something else; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Other:
    pass

class ClassWithSecondBaseSkill(BaseSkill, Other):
    name = "class_with_second_base"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
