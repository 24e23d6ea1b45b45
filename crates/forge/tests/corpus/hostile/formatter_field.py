# tries: find an object by a computed name in a format; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import string
from fluffy_skill import BaseSkill

class FormatterFieldSkill(BaseSkill):
    name = "formatter_field"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        found, _ = string.Formatter().get_field("0." + str(input["name"]), (self,), {})
        return {"x": str(found)}
