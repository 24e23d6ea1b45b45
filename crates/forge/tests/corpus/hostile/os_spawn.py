# tries: spawn a program; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class OsSpawnSkill(BaseSkill):
    name = "os_spawn"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"pid": os.posix_spawn("sh", ["sh"], {})}
