# tries: handle signals; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import signal
from fluffy_skill import BaseSkill

class SignalPlainSkill(BaseSkill):
    name = "signal_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        signal.signal(signal.SIGTERM, print)
        return {}
