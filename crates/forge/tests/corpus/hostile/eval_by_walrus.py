# tries: take eval while it is asked for; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EvalByWalrusSkill(BaseSkill):
    name = "eval_by_walrus"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        if (how := eval) is not None:
            return {"value": how(str(input["text"]))}
        return {}
