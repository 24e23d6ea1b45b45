# tries: put an annotation together out of texts; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

def show(text: "ev" + "al" + "('1')") -> None:
    return None

class AnnotationInPiecesSkill(BaseSkill):
    name = "annotation_in_pieces"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {}
