# tries: start processes; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import multiprocessing
from fluffy_skill import BaseSkill

class MultiprocessingPlainSkill(BaseSkill):
    name = "multiprocessing_plain"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        multiprocessing.Process(target=print).start()
        return {}
