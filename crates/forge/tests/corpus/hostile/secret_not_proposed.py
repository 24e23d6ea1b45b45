# tries: ask for a secret that was not proposed; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretNotProposedSkill(BaseSkill):
    name = "secret_not_proposed"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        self.secret("OTHER_KEY")
        return {}
