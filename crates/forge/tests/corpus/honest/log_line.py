# looks like: logging what is no secret
# side effects: READ_ONLY
"""A skill of the corpus."""
import logging
from fluffy_skill import BaseSkill

LOG = logging.getLogger("corpus")

class LogLineSkill(BaseSkill):
    name = "log_line"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        LOG.info("searching %s", input["text"])
        return {"done": True}
