# tries: take what the base is given; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class BaseInitReplacedSkill(BaseSkill):
    name = "base_init_replaced"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def __init__(self, folders: object = None, secrets: object = None, model: object = None) -> None:
        self.kept = secrets

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
