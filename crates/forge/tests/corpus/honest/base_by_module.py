# looks like: the base by its module
# side effects: READ_ONLY
"""A skill of the corpus."""
import fluffy_skill

class BaseByModuleSkill(fluffy_skill.BaseSkill):
    name = "base_by_module"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
