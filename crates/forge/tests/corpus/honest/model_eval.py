# looks like: model.eval() is a method
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Model:
    def eval(self) -> int:
        return 1

class ModelEvalSkill(BaseSkill):
    name = "model_eval"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        model = Model()
        return {"value": model.eval()}
