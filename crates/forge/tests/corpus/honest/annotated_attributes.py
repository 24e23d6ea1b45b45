# looks like: attributes with annotations
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class AnnotatedAttributesSkill(BaseSkill):
    name: str = "annotated_attributes"
    description: str = "A skill of the corpus."
    side_effect_class: str = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
