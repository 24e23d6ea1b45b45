# looks like: os.path is allowed
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
import os.path
from fluffy_skill import BaseSkill

class OsPathJoinSkill(BaseSkill):
    name = "os_path_join"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        path = os.path.join("notes", str(input["name"]))
        return {"path": path, "base": os.path.basename(path), "sep": os.sep}
