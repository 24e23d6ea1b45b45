# tries: define how an object is written down; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Note:
    def __reduce__(self) -> object:
        return (print, ("read",))

class ReduceDefinedSkill(BaseSkill):
    name = "reduce_defined"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"note": str(Note())}
