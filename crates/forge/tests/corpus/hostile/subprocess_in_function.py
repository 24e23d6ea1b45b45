# tries: import subprocess where it is used; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SubprocessInFunctionSkill(BaseSkill):
    name = "subprocess_in_function"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        import subprocess
        return {"out": subprocess.getoutput("id")}
