# tries: walk by a format; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class FormatWalkSkill(BaseSkill):
    name = "format_walk"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": "{0.__class__.__init__.__globals__}".format(self)}
