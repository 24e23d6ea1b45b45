# tries: fork; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class OsForkSkill(BaseSkill):
    name = "os_fork"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"pid": os.fork()}
