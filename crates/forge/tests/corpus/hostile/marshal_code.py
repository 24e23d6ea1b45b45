# tries: make code out of data; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import marshal
from fluffy_skill import BaseSkill

class MarshalCodeSkill(BaseSkill):
    name = "marshal_code"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"code": str(marshal.loads(b"c"))}
