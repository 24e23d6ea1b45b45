# tries: take eval in a guard of a match; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class EvalInPatternSkill(BaseSkill):
    name = "eval_in_pattern"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        match input:
            case {"text": str(text)} if eval(text):
                return {}
        return {}
