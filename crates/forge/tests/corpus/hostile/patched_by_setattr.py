# tries: replace a method for everybody by name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from pathlib import Path
from fluffy_skill import BaseSkill

setattr(Path, "exists", print)

class PatchedBySetattrSkill(BaseSkill):
    name = "patched_by_setattr"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {}
