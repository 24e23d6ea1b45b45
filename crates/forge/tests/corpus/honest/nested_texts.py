# looks like: texts in texts
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class NestedTextsSkill(BaseSkill):
    name = "nested_texts"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        title = str(input["title"])
        return {"text": f"{title!r:>{20}} {f'{len(title):03d}'} {{braces}}"}
