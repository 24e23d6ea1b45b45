# tries: import subprocess under another name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import subprocess as text
from fluffy_skill import BaseSkill

class SubprocessRenamedSkill(BaseSkill):
    name = "subprocess_renamed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"out": text.getoutput("id")}
