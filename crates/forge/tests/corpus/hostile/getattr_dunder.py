# tries: find an attribute that leads out by name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class GetattrDunderSkill(BaseSkill):
    name = "getattr_dunder"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": str(getattr(self, "__class__"))}
