# tries: compute side effects behind an annotation; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EffectsAnnotatedSkill(BaseSkill):
    name = "effects_annotated"
    description = "A skill of the corpus."
    side_effect_class: str = "READ_" + "ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
