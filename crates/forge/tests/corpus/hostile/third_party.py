# tries: stand on a package from outside; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
import requests
from fluffy_skill import BaseSkill

class ThirdPartySkill(BaseSkill):
    name = "third_party"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": str(requests.get("https://example.org"))}
