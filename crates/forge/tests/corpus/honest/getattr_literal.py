# looks like: getattr with a name that stands there
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class GetattrLiteralSkill(BaseSkill):
    name = "getattr_literal"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        title = getattr(self, "title", "none")
        return {"title": str(title), "has": hasattr(self, "title")}
