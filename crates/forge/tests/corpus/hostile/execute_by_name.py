# tries: replace what is run by name; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ExecuteByNameSkill(BaseSkill):
    name = "execute_by_name"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


setattr(ExecuteByNameSkill, "execute", print)
