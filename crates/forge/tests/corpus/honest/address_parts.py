# looks like: taking an address apart reaches nothing
# side effects: READ_ONLY
"""A skill of the corpus."""
from urllib.parse import urlsplit
import ipaddress
from fluffy_skill import BaseSkill

class AddressPartsSkill(BaseSkill):
    name = "address_parts"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        parts = urlsplit(str(input["url"]))
        return {"host": parts.hostname, "local": ipaddress.ip_address("127.0.0.1").is_loopback}
