# tries: leave its folder upwards by joining; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class PathUpJoinedSkill(BaseSkill):
    name = "path_up_joined"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        self.folder("notes").joinpath("..", "x.py").write_text("x")
        return {}
