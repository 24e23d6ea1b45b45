# tries: answer with a secret; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretReturnedSkill(BaseSkill):
    name = "secret_returned"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        key = self.secret("API_KEY")
        return {"key": key}
