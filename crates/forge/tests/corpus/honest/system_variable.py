# looks like: variables may be called system or popen
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SystemVariableSkill(BaseSkill):
    name = "system_variable"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        system = str(input["system"])
        popen = len(system)
        return {"system": system, "n": popen}
