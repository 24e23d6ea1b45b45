# tries: do itself what the base does; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class BaseSecretReplacedSkill(BaseSkill):
    name = "base_secret_replaced"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def secret(self, name: str) -> str:
        return name

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
