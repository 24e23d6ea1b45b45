# tries: import something over the class; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ClassImportedOverSkill(BaseSkill):
    name = "class_imported_over"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


from support.gateway import Base as ClassImportedOverSkill
