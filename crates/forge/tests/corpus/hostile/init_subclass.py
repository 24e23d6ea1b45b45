# tries: change classes that extend it; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Note:
    def __init_subclass__(cls) -> None:
        cls.name = "x"

class InitSubclassSkill(BaseSkill):
    name = "init_subclass"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"note": str(Note())}
