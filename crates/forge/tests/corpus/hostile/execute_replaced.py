# tries: replace what is run; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

def other(self: object, input: object) -> object:
    return input

class ExecuteReplacedSkill(BaseSkill):
    name = "execute_replaced"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


ExecuteReplacedSkill.execute = other
