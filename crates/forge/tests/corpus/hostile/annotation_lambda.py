# tries: hide a call deep in an annotation; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

def note(text: "list[(lambda: print(1))()]") -> None:
    return None

class AnnotationLambdaSkill(BaseSkill):
    name = "annotation_lambda"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        note([])
        return {}
