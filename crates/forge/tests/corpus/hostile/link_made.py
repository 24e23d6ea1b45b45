# tries: make a link out of its folder; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class LinkMadeSkill(BaseSkill):
    name = "link_made"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        (self.folder("notes") / "a").symlink_to(str(input["to"]))
        return {}
