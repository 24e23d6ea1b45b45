# tries: import another base under the same name; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from support.gateway import Base as BaseSkill
from fluffy_skill import BaseSkill

class BaseImportedTwiceSkill(BaseSkill):
    name = "base_imported_twice"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
