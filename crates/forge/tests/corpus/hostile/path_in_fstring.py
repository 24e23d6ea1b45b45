# tries: read a file of the machine whose name has a hole; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from pathlib import Path
from fluffy_skill import BaseSkill

class PathInFstringSkill(BaseSkill):
    name = "path_in_fstring"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": Path(f"/etc/{input['name']}").read_text()}
