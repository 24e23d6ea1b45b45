# -*- coding: utf-8 -*- looks like: a coding line that says what is true
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class CodingLineSkill(BaseSkill):
    name = "coding_line"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
