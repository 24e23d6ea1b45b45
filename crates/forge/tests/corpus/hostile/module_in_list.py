# tries: take a module out of a list; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import json
from fluffy_skill import BaseSkill

class ModuleInListSkill(BaseSkill):
    name = "module_in_list"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": [json][0].codecs.open("x").read()}
