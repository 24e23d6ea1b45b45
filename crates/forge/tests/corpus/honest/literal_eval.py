# looks like: ast.literal_eval evaluates no code
# side effects: READ_ONLY
"""A skill of the corpus."""
import ast
from fluffy_skill import BaseSkill

class LiteralEvalSkill(BaseSkill):
    name = "literal_eval"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"value": ast.literal_eval(str(input["text"]))}
