# looks like: a method called compile is not compile
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OwnCompileSkill(BaseSkill):
    name = "own_compile"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def compile(self, text: str) -> list[str]:
        return text.split()

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"words": self.compile(str(input["text"]))}
