# tries: import by a file; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
import importlib.util
from fluffy_skill import BaseSkill

class ImportlibUtilSkill(BaseSkill):
    name = "importlib_util"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"spec": str(importlib.util.find_spec("os"))}
