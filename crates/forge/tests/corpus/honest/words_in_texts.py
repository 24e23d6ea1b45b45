# looks like: texts about eval and os.system are no calls
# side effects: READ_ONLY
"""Explains why eval() and os.system() are dangerous, and __import__ too."""
from fluffy_skill import BaseSkill

ADVICE = "Never use eval, exec, subprocess or os.system on what people type."

class WordsInTextsSkill(BaseSkill):
    name = "words_in_texts"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"advice": ADVICE}
