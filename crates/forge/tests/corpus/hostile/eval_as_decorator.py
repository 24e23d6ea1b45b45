# tries: have a decorator evaluate text; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EvalAsDecoratorSkill(BaseSkill):
    name = "eval_as_decorator"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        @eval
        class Inner:
            pass
        return {"value": str(Inner)}
