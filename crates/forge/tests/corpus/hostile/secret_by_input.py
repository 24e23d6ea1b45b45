# tries: let the caller choose the secret; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretByInputSkill(BaseSkill):
    name = "secret_by_input"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        self.secret(str(input["which"]))
        return {}
