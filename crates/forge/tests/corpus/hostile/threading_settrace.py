# tries: look into every frame of a thread; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import threading
from fluffy_skill import BaseSkill

class ThreadingSettraceSkill(BaseSkill):
    name = "threading_settrace"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        threading.settrace(print)
        return {}
