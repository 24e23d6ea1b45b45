# looks like: another class may have a name and a description
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Tag:
    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description

class HelperWithNameSkill(BaseSkill):
    name = "helper_with_name"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        tag = Tag("a", "b")
        return {"name": tag.name}
