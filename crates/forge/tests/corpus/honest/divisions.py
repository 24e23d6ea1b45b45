# looks like: dividing numbers is not joining paths
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class DivisionsSkill(BaseSkill):
    name = "divisions"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        total = float(str(input["total"]))
        return {"half": total / 2, "mean": (total + 1) / 3}
