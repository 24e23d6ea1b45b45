# tries: look into every frame; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import sys
from fluffy_skill import BaseSkill

class SettraceSkill(BaseSkill):
    name = "settrace"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        sys.settrace(print)
        return {}
