# looks like: walking its folder is reading
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class WalkNotesSkill(BaseSkill):
    name = "walk_notes"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        names = []
        for _, _, files in os.walk(self.folder("notes")):
            names.extend(files)
        return {"names": sorted(names)}
