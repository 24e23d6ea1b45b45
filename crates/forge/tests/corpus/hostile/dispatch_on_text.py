# tries: have a library evaluate text in an annotation; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
from functools import singledispatch
from fluffy_skill import BaseSkill

KIND = "ev" + "al('1')"


@singledispatch
def show(text: object) -> None:
    return None


@show.register
def _(text: KIND) -> None:
    return None

class DispatchOnTextSkill(BaseSkill):
    name = "dispatch_on_text"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {}
