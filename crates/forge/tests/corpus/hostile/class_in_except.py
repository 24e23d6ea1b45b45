# tries: give the class another meaning in a handler; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ClassInExceptSkill(BaseSkill):
    name = "class_in_except"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


try:
    1 // 0
except ZeroDivisionError as ClassInExceptSkill:
    pass
