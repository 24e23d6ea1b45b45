# tries: match an attribute by a computed name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Note:
    __match_args__ = ("__cl" + "ass__",)

class MatchArgsSkill(BaseSkill):
    name = "match_args"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        match Note():
            case Note(kind):
                return {"kind": str(kind)}
        return {}
