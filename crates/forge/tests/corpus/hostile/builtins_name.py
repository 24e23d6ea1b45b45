# tries: reach builtins by their name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class BuiltinsNameSkill(BaseSkill):
    name = "builtins_name"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": __builtins__["eval"]("1")}
