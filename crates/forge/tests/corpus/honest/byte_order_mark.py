# looks like: a byte order mark at the beginning
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ByteOrderMarkSkill(BaseSkill):
    name = "byte_order_mark"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"n": 1}
