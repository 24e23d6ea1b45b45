# tries: find an attribute that leads out by operator; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import operator
from fluffy_skill import BaseSkill

class AttrgetterDunderSkill(BaseSkill):
    name = "attrgetter_dunder"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": str(operator.attrgetter("execute.__globals__")(self))}
