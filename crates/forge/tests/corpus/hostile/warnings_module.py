# tries: reach sys through a private attribute; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import warnings
from fluffy_skill import BaseSkill

class WarningsModuleSkill(BaseSkill):
    name = "warnings_module"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"names": str(warnings.catch_warnings()._module.sys)}
