# tries: open a socket; seen by: policy
# side effects: NETWORK
"""A skill of the corpus."""
import socket
from fluffy_skill import BaseSkill

class SocketPlainSkill(BaseSkill):
    name = "socket_plain"
    description = "A skill of the corpus."
    side_effect_class = "NETWORK"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        socket.create_connection(("example.org", 80))
        return {}
