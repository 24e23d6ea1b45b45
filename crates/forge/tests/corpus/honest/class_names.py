# looks like: the name of a class is not the class
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ClassNamesSkill(BaseSkill):
    name = "class_names"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"kind": type(self).__name__, "same": self.__class__.__name__}
