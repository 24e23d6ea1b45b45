# tries: answer with something that was not proposed; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunWrongAnswerSkill(BaseSkill):
    name = "run_wrong_answer"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"surprise": [1, 2, 3]}
