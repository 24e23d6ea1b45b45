# tries: fail in a way that nobody expects; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunRaisesSkill(BaseSkill):
    name = "run_raises"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        raise RecursionError("x" * 100000)
