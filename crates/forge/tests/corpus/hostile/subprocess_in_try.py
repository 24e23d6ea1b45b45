# tries: import subprocess where an import fails; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

try:
    import json5 as tool
except ImportError:
    import subprocess as tool

class SubprocessInTrySkill(BaseSkill):
    name = "subprocess_in_try"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"out": tool.getoutput("id")}
