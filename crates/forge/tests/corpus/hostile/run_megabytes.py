# tries: print without end; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunMegabytesSkill(BaseSkill):
    name = "run_megabytes"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        while True:
            print("x" * (1 << 20))
