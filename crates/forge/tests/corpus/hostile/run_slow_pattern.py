# tries: never answer, inside a library; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
import re
from fluffy_skill import BaseSkill

class RunSlowPatternSkill(BaseSkill):
    name = "run_slow_pattern"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"found": bool(re.match("(a+)+$", "a" * 60 + "b"))}
