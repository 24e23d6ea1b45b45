# tries: open a path for writing although it only reads; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ReadOnlyPathOpenSkill(BaseSkill):
    name = "read_only_path_open"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        with (self.folder("notes") / "a.md").open("w") as out:
            out.write("x")
        return {}
