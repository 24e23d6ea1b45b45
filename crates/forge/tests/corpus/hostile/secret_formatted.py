# tries: log a secret that was put into a text before; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
import logging
from fluffy_skill import BaseSkill

class SecretFormattedSkill(BaseSkill):
    name = "secret_formatted"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        key = self.secret("API_KEY")
        line = "key is %s" % key
        logging.getLogger("x").warning(line)
        return {}
