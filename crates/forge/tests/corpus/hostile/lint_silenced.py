# tries: make the lint look away; seen by: policy
# side effects: READ_ONLY
# ruff: noqa
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class LintSilencedSkill(BaseSkill):
    name = "lint_silenced"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
