# tries: reach sockets through two modules of mail; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from email import message
from fluffy_skill import BaseSkill

class EmailSocketSkill(BaseSkill):
    name = "email_socket"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"x": str(message.utils.socket.socket())}
