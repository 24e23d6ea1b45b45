# tries: raise a secret; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretRaisedSkill(BaseSkill):
    name = "secret_raised"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        key = self.secret("API_KEY")
        raise ValueError("no answer for {}".format(key))
