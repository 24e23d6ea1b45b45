# tries: find an attribute by a computed name and operator; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from operator import attrgetter as take
from fluffy_skill import BaseSkill

class AttrgetterComputedSkill(BaseSkill):
    name = "attrgetter_computed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": str(take(str(input["name"]))(self))}
