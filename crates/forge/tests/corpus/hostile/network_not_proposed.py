# tries: reach the network although it only reads; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import urllib.request
from fluffy_skill import BaseSkill

class NetworkNotProposedSkill(BaseSkill):
    name = "network_not_proposed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": str(urllib.request.urlopen("https://example.org"))}
