# tries: take an attribute that leads out in a pattern; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ClassInPatternSkill(BaseSkill):
    name = "class_in_pattern"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        match self:
            case object(__class__=kind):
                return {"kind": str(kind)}
        return {}
