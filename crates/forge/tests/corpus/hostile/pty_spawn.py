# tries: start a program in a terminal; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import pty
from fluffy_skill import BaseSkill

class PtySpawnSkill(BaseSkill):
    name = "pty_spawn"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        pty.spawn("sh")
        return {}
