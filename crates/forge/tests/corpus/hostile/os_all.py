# tries: take everything out of os; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from os import *
from fluffy_skill import BaseSkill

class OsAllSkill(BaseSkill):
    name = "os_all"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"code": system("id")}
