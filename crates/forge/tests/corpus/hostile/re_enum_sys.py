# tries: reach sys through two modules; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import re
from fluffy_skill import BaseSkill

class ReEnumSysSkill(BaseSkill):
    name = "re_enum_sys"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"modules": len(re.enum.sys.modules)}
