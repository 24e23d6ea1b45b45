# looks like: a method called exec is not exec
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OwnExecSkill(BaseSkill):
    name = "own_exec"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def exec(self, text: str) -> str:
        return text.upper()

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": self.exec(str(input["text"]))}
