# tries: send mail past the proxy; seen by: policy
# side effects: MESSAGING
"""A skill of the corpus."""
import smtplib
from fluffy_skill import BaseSkill

class SmtpPlainSkill(BaseSkill):
    name = "smtp_plain"
    description = "A skill of the corpus."
    side_effect_class = "MESSAGING"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        smtplib.SMTP("example.org")
        return {}
