# tries: hand attrgetter on before it is used; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import operator
from fluffy_skill import BaseSkill

class AttrgetterHandedOnSkill(BaseSkill):
    name = "attrgetter_handed_on"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        take = operator.attrgetter
        return {"x": str(take(str(input["name"]))(self))}
