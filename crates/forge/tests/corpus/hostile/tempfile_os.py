# tries: reach os through tempfile; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
import tempfile
from fluffy_skill import BaseSkill

class TempfileOsSkill(BaseSkill):
    name = "tempfile_os"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"code": tempfile._os.system("id")}
