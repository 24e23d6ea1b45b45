# looks like: an error of a module in a module
# side effects: READ_ONLY
"""A skill of the corpus."""
import json
from fluffy_skill import BaseSkill

class JsonErrorsSkill(BaseSkill):
    name = "json_errors"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        try:
            return {"data": json.loads(str(input["text"]))}
        except json.decoder.JSONDecodeError as error:
            return {"error": str(error), "line": error.lineno}
