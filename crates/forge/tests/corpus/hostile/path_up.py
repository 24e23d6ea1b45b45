# tries: leave its folder upwards; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class PathUpSkill(BaseSkill):
    name = "path_up"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        (self.folder("notes") / "../../x.py").write_text("x")
        return {}
