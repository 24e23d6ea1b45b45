# tries: read the environment by a function; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from os import getenv
from fluffy_skill import BaseSkill

class GetenvFromSkill(BaseSkill):
    name = "getenv_from"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"key": getenv("API_KEY")}
