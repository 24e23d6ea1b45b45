# looks like: decorators, caches and wrappers
# side effects: READ_ONLY
"""A skill of the corpus."""
import functools
from collections.abc import Callable
from fluffy_skill import BaseSkill

def loud(function: Callable[[str], str]) -> Callable[[str], str]:
    @functools.wraps(function)
    def inner(text: str) -> str:
        return function(text).upper()

    return inner


@loud
def greet(text: str) -> str:
    return f"hello {text}"


@functools.lru_cache(maxsize=8)
def square(n: int) -> int:
    return n * n

class DecoratedSkill(BaseSkill):
    name = "decorated"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": greet(str(input["text"])), "n": square(3)}
