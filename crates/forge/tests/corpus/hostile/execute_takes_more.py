# tries: take more than its input; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ExecuteTakesMoreSkill(BaseSkill):
    name = "execute_takes_more"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object], root: str = "x") -> dict[str, object]:
        return {"done": True}
