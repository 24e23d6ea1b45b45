# tries: let the caller choose the host; seen by: run
# side effects: NETWORK
"""A skill of the corpus."""
import urllib.request
from fluffy_skill import BaseSkill

class RunAddressOfCallerSkill(BaseSkill):
    name = "run_address_of_caller"
    description = "A skill of the corpus."
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": urllib.request.urlopen(str(input["url"])).read().decode()}
