# looks like: shared modules of skills
# side effects: READ_ONLY
"""A skill of the corpus."""
from support import settings
from support.gateway import embed
from fluffy_skill import BaseSkill

class SharedSettingsSkill(BaseSkill):
    name = "shared_settings"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"limit": settings.LIMIT, "vector": embed(str(input["text"]))}
