# tries: open by io; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import io
from fluffy_skill import BaseSkill

class IoOpenSkill(BaseSkill):
    name = "io_open"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": io.open("a").read()}
