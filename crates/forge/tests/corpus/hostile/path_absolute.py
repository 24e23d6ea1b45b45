# tries: read a file of the machine; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from pathlib import Path
from fluffy_skill import BaseSkill

class PathAbsoluteSkill(BaseSkill):
    name = "path_absolute"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": Path("/etc/passwd").read_text()}
