# tries: answer with something nested without end; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunDeepAnswerSkill(BaseSkill):
    name = "run_deep_answer"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        answer: dict[str, object] = {}
        for _ in range(200000):
            answer = {"in": answer}
        return answer
