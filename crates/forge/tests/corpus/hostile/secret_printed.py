# tries: print a secret; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretPrintedSkill(BaseSkill):
    name = "secret_printed"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        print(self.secret("API_KEY"))
        return {}
