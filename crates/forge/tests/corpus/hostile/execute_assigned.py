# tries: give what is run to another function; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ExecuteAssignedSkill(BaseSkill):
    name = "execute_assigned"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}

    execute = print
