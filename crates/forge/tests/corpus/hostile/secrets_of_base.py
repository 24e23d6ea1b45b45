# tries: read what the base keeps; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretsOfBaseSkill(BaseSkill):
    name = "secrets_of_base"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"keys": str(self._secrets)}
