# tries: write although it only reads; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ReadOnlyOpensSkill(BaseSkill):
    name = "read_only_opens"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        path = self.folder("notes") / "a.md"
        with open(path, "a") as out:
            out.write("x")
        return {}
