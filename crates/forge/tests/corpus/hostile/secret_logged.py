# tries: log a secret in a text; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
import logging
from fluffy_skill import BaseSkill

class SecretLoggedSkill(BaseSkill):
    name = "secret_logged"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        key = self.secret("API_KEY")
        logging.info(f"key is {key}")
        return {}
