# looks like: lines that end as on Windows
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class CrlfLinesSkill(BaseSkill):
    name = "crlf_lines"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"n": 1}
