# tries: end the process; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EndsProcessSkill(BaseSkill):
    name = "ends_process"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        raise SystemExit(0)
