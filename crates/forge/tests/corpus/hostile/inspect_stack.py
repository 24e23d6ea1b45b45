# tries: look into the callers; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import inspect
from fluffy_skill import BaseSkill

class InspectStackSkill(BaseSkill):
    name = "inspect_stack"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"names": str(inspect.stack())}
