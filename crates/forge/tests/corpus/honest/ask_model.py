# looks like: the local model, through the base
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class AskModelSkill(BaseSkill):
    name = "ask_model"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        answer = self.model.generate(f"Summarise: {input['text']}")
        return {"summary": answer}
