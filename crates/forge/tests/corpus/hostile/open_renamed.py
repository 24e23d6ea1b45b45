# tries: give open another name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

show = open

class OpenRenamedSkill(BaseSkill):
    name = "open_renamed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": show(str(input["path"])).read()}
