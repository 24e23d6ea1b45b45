# tries: open in a way that cannot be seen; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ModeComputedSkill(BaseSkill):
    name = "mode_computed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        path = self.folder("notes") / "a.md"
        with open(path, str(input["mode"])) as file:
            return {"text": file.read()}
