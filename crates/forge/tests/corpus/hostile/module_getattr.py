# tries: answer for names that a module does not have; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

def __getattr__(name: str) -> str:
    return name

class ModuleGetattrSkill(BaseSkill):
    name = "module_getattr"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {}
