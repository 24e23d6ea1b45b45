# tries: open by codecs; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import codecs
from fluffy_skill import BaseSkill

class CodecsOpenSkill(BaseSkill):
    name = "codecs_open"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": codecs.open("a", "w").write("x")}
