# tries: run code after the answer; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import atexit
from fluffy_skill import BaseSkill

class AtexitPlainSkill(BaseSkill):
    name = "atexit_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        atexit.register(print)
        return {}
