# tries: start a program with subprocess; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import subprocess
from fluffy_skill import BaseSkill

class SubprocessPlainSkill(BaseSkill):
    name = "subprocess_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"out": subprocess.check_output(["id"]).decode()}
