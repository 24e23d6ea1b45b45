# looks like: texts in other scripts
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

GREETINGS = {"de": "Grüße", "ja": "こんにちは", "el": "γειά", "emoji": "👩‍👩‍👧"}

class ManyTonguesSkill(BaseSkill):
    name = "many_tongues"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": GREETINGS[str(input["tongue"])]}
