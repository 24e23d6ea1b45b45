# tries: never answer, inside the interpreter; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunLargeNumberSkill(BaseSkill):
    name = "run_large_number"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"digits": len(str(7 ** (10 ** 9)))}
