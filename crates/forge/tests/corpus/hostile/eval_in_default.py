# tries: take eval from a default; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EvalInDefaultSkill(BaseSkill):
    name = "eval_in_default"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def run(self, text: str, how=eval) -> object:
        return how(text)

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": self.run(str(input["text"]))}
