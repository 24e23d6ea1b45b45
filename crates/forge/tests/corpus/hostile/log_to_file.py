# tries: write a file by logging; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import logging
from fluffy_skill import BaseSkill

class LogToFileSkill(BaseSkill):
    name = "log_to_file"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        logging.FileHandler("a.log")
        return {}
