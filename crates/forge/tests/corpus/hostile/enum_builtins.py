# tries: reach eval through enum; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import enum
from fluffy_skill import BaseSkill

class EnumBuiltinsSkill(BaseSkill):
    name = "enum_builtins"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": enum.bltns.eval("1")}
