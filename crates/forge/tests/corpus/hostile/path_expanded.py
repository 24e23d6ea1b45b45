# tries: have a home put in; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class PathExpandedSkill(BaseSkill):
    name = "path_expanded"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": (self.folder("notes") / "~x").expanduser().read_text()}
