# looks like: new syntax for type parameters
# side effects: READ_ONLY
"""A skill of the corpus."""
from collections.abc import Sequence
from fluffy_skill import BaseSkill

type Names = list[str]


def first[T](items: Sequence[T]) -> T:
    return items[0]

class GenericFunctionSkill(BaseSkill):
    name = "generic_function"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        names: Names = ["a"]
        return {"first": first(names)}
