# tries: reach sockets through http; seen by: policy
# side effects: NETWORK
"""A skill of the corpus."""
import http.client
from fluffy_skill import BaseSkill

class SocketThroughHttpSkill(BaseSkill):
    name = "socket_through_http"
    description = "A skill of the corpus."
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        http.client.socket.create_connection(("example.org", 80))
        return {}
