# tries: move the indentation for Python alone; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class FormFeedSkill(BaseSkill):
    name = "form_feed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        if input:
            pass
        return {}

