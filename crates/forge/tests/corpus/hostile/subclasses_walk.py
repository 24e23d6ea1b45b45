# tries: walk over all classes; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SubclassesWalkSkill(BaseSkill):
    name = "subclasses_walk"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"n": len(().__class__.__base__.__subclasses__())}
