# tries: write outside its folder by a computed path; seen by: run
# side effects: FILE_WRITE
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class RunWritesUpSkill(BaseSkill):
    name = "run_writes_up"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        path = self.folder("notes") / os.sep.join([os.pardir, os.pardir, "x.py"])
        path.write_text("x")
        return {}
