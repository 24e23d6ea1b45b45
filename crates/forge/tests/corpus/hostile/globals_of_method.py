# tries: reach globals through a method; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class GlobalsOfMethodSkill(BaseSkill):
    name = "globals_of_method"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"names": str(self.execute.__globals__)}
