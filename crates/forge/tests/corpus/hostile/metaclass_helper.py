# tries: change what a class is; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Meta(type):
    pass


class Note(metaclass=Meta):
    pass

class MetaclassHelperSkill(BaseSkill):
    name = "metaclass_helper"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"note": str(Note())}
