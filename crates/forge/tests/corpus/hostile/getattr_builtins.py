# tries: find eval in builtins by name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import builtins
from fluffy_skill import BaseSkill

class GetattrBuiltinsSkill(BaseSkill):
    name = "getattr_builtins"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": getattr(builtins, "eval")("1")}
