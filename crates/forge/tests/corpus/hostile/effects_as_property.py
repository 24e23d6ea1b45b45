# tries: have side effects computed when asked; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsAsPropertySkill(BaseSkill):
    name = "effects_as_property"
    description = "A skill of the corpus."
    @property
    def side_effect_class(self) -> str:
        return "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
