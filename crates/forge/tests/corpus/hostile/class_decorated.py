# tries: be changed by a decorator; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

def change(kind: type) -> type:
    return kind

@change
class ClassDecoratedSkill(BaseSkill):
    name = "class_decorated"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
