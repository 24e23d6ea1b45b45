# tries: give one name to two imports; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from json import dumps as run
from operator import attrgetter as run
from fluffy_skill import BaseSkill

class TwoMeaningsSkill(BaseSkill):
    name = "two_meanings"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"x": str(run(str(input["name"])))}
