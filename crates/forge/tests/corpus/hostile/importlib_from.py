# tries: import by name, taken out of importlib; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from importlib import import_module
from fluffy_skill import BaseSkill

class ImportlibFromSkill(BaseSkill):
    name = "importlib_from"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"code": str(import_module("subprocess"))}
