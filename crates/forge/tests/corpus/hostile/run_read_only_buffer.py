# tries: write although it only reads, by a handle that was opened elsewhere; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class RunReadOnlyBufferSkill(BaseSkill):
    name = "run_read_only_buffer"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        names = [entry.name for entry in os.scandir(self.folder("notes"))]
        for name in names:
            (self.folder("notes") / name).replace(self.folder("notes") / f"{name}.old")
        return {"names": names}
