# tries: read a descriptor that it was not given; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OpenDescriptorSkill(BaseSkill):
    name = "open_descriptor"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": open(3).read()}
