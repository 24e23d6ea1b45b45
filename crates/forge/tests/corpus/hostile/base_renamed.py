# tries: hide a second skill behind another name of the base; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class BaseRenamedSkill(BaseSkill):
    name = "base_renamed"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}


Base = BaseSkill


class Real(Base):
    pass
