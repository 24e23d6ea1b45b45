# tries: find every object of the process; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import gc
from fluffy_skill import BaseSkill

class GcObjectsSkill(BaseSkill):
    name = "gc_objects"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"n": len(gc.get_objects())}
