# tries: call native code; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import ctypes
from fluffy_skill import BaseSkill

class CtypesPlainSkill(BaseSkill):
    name = "ctypes_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"id": ctypes.CDLL(None).getuid()}
