# tries: run another module; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import runpy
from fluffy_skill import BaseSkill

class RunpyPlainSkill(BaseSkill):
    name = "runpy_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"names": str(runpy.run_path("x.py"))}
