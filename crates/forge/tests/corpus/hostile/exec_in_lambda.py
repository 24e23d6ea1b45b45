# tries: take exec from the default of a lambda; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ExecInLambdaSkill(BaseSkill):
    name = "exec_in_lambda"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        (lambda text, how=exec: how(text))(str(input["text"]))
        return {}
