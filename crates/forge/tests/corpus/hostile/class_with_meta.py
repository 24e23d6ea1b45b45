# tries: be changed by a metaclass; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from abc import ABCMeta
from fluffy_skill import BaseSkill

class ClassWithMetaSkill(BaseSkill, metaclass=ABCMeta):
    name = "class_with_meta"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
