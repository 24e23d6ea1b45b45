# tries: write beside the folders; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OpenRelativeSkill(BaseSkill):
    name = "open_relative"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        with open("notes.txt", "w") as out:
            out.write("x")
        return {}
