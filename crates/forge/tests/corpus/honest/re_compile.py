# looks like: re.compile is not compile
# side effects: READ_ONLY
"""A skill of the corpus."""
import re
from fluffy_skill import BaseSkill

WORD = re.compile(r"\w+")

class ReCompileSkill(BaseSkill):
    name = "re_compile"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"words": WORD.findall(str(input["text"]))}
