# tries: open by a function of its own; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OpenWithOpenerSkill(BaseSkill):
    name = "open_with_opener"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": open("a", opener=print).read()}
