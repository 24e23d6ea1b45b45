# tries: make a class out of a list; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class TypeOfStarSkill(BaseSkill):
    name = "type_of_star"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        kind = type(*[str(input["name"]), (), {}])
        return {"kind": str(kind)}
