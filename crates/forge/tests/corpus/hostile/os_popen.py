# tries: start a program with os.popen; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class OsPopenSkill(BaseSkill):
    name = "os_popen"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"out": os.popen("id").read()}
