# tries: call native code by a library; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from cffi import FFI
from fluffy_skill import BaseSkill

class CffiPlainSkill(BaseSkill):
    name = "cffi_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"id": FFI().dlopen(None).getuid()}
