# tries: find an attribute by a computed name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class GetattrComputedSkill(BaseSkill):
    name = "getattr_computed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": str(getattr(self, "__cl" + "ass__"))}
