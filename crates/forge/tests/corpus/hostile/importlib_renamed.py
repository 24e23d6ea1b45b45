# tries: import by name, under another name; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
import importlib as tools
from fluffy_skill import BaseSkill

class ImportlibRenamedSkill(BaseSkill):
    name = "importlib_renamed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"code": str(tools.import_module("subprocess"))}
