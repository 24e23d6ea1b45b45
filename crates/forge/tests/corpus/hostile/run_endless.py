# tries: never answer; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunEndlessSkill(BaseSkill):
    name = "run_endless"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        while True:
            pass
