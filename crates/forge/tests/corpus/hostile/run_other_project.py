# tries: read the project beyond its folders; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class RunOtherProjectSkill(BaseSkill):
    name = "run_other_project"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        here = self.folder("notes")
        names = []
        for place, _, files in os.walk(here.parent.parent):
            names.extend(f"{place}:{name}" for name in files)
        return {"names": names}
