# looks like: a description in two lines
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class DescriptionInPartsSkill(BaseSkill):
    name = "description_in_parts"
    description = (
        "A skill "
        "of the corpus."
    )
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
