# looks like: objects that behave like others
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class Timer:
    def __enter__(self) -> "Timer":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __len__(self) -> int:
        return 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timer)

    def __hash__(self) -> int:
        return 1

class ContextManagerSkill(BaseSkill):
    name = "context_manager"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        with Timer() as timer:
            return {"n": len(timer), "same": timer == Timer()}
