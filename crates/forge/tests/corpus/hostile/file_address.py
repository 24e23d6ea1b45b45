# tries: read a file of the machine by an address; seen by: policy
# side effects: NETWORK
"""A skill of the corpus."""
from urllib.request import urlopen
from fluffy_skill import BaseSkill

class FileAddressSkill(BaseSkill):
    name = "file_address"
    description = "A skill of the corpus."
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": urlopen("file:///etc/passwd").read().decode()}
