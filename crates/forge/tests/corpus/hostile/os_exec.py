# tries: become another program; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class OsExecSkill(BaseSkill):
    name = "os_exec"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        os.execv("sh", ["sh", "-c", "id"])
        return {}
