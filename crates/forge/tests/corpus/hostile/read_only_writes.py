# tries: write by pathlib although it only reads; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ReadOnlyWritesSkill(BaseSkill):
    name = "read_only_writes"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        (self.folder("notes") / "a.md").write_text("x")
        return {}
