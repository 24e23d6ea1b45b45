# tries: copy an attribute by a computed name; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import functools
from fluffy_skill import BaseSkill

class WrapperCopiesSkill(BaseSkill):
    name = "wrapper_copies"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        functools.update_wrapper(self, self.execute, assigned=[str(input["name"])])
        return {}
