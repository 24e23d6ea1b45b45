# tries: have a private key in the file; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

KEY = """-----BEGIN RSA PRIVATE KEY-----
MIIB
-----END RSA PRIVATE KEY-----"""

class PrivateKeyInTextSkill(BaseSkill):
    name = "private_key_in_text"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"n": len(KEY)}
