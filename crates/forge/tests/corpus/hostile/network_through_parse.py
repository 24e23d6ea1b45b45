# tries: reach the network through what is allowed to all; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import urllib.parse
from fluffy_skill import BaseSkill

class NetworkThroughParseSkill(BaseSkill):
    name = "network_through_parse"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": str(urllib.request.urlopen("https://example.org"))}
