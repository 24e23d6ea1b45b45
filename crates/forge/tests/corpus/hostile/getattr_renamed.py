# tries: give getattr another name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

take = getattr

class GetattrRenamedSkill(BaseSkill):
    name = "getattr_renamed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": str(take(self, "__class__"))}
