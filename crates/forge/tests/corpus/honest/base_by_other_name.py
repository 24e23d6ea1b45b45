# looks like: the base under another name
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill as Base

class BaseByOtherNameSkill(Base):
    name = "base_by_other_name"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
