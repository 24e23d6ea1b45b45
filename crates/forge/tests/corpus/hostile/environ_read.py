# tries: read the environment; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import os
from fluffy_skill import BaseSkill

class EnvironReadSkill(BaseSkill):
    name = "environ_read"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"key": os.environ["API_KEY"]}
