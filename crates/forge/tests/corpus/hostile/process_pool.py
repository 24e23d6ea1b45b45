# tries: start processes by a pool; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from concurrent.futures import ProcessPoolExecutor
from fluffy_skill import BaseSkill

class ProcessPoolSkill(BaseSkill):
    name = "process_pool"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        with ProcessPoolExecutor() as pool:
            return {"n": pool.submit(len, "abc").result()}
