# tries: show people another order of the text; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class DirectionTurnedSkill(BaseSkill):
    name = "direction_turned"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        allowed = False  # ‮ } ⁦if admin⁩ ⁦ begin
        return {"allowed": allowed}
