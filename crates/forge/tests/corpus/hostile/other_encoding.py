# tries: have the text read in another encoding; seen by: policy; coding: utf-7
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OtherEncodingSkill(BaseSkill):
    name = "other_encoding"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
