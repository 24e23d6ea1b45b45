# tries: use what is for tests; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
import pytest
from fluffy_skill import BaseSkill

class HarnessInSkillSkill(BaseSkill):
    name = "harness_in_skill"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"x": str(pytest.raises)}
