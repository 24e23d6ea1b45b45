# looks like: paths of an address are no paths of the machine
# side effects: NETWORK
"""A skill of the corpus."""
import http.client
import json
from fluffy_skill import BaseSkill

class ApiPathsSkill(BaseSkill):
    name = "api_paths"
    description = "A skill of the corpus."
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        connection = http.client.HTTPSConnection("api.example.org", timeout=10)
        connection.request("GET", "/api/v1/items", headers={"Accept": "application/json"})
        return {"items": json.loads(connection.getresponse().read())}
