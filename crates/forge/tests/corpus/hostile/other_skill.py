# tries: stand on another skill; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from write_note import WriteNoteSkill
from fluffy_skill import BaseSkill

class OtherSkillSkill(BaseSkill):
    name = "other_skill"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"x": str(WriteNoteSkill)}
