# looks like: a line that says which rule it breaks
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

LONG = 1  # noqa: E501
ODD: int = "a"  # type: ignore[assignment]

class QuietLineSkill(BaseSkill):
    name = "quiet_line"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"long": LONG}
