# looks like: an abstract class of its own
# side effects: READ_ONLY
"""A skill of the corpus."""
from abc import ABC, ABCMeta, abstractmethod
from fluffy_skill import BaseSkill

class Step(ABC):
    @abstractmethod
    def run(self, text: str) -> str: ...


class Upper(Step):
    def run(self, text: str) -> str:
        return text.upper()


class Other(metaclass=ABCMeta):
    """Does nothing."""

class AbstractHelperSkill(BaseSkill):
    name = "abstract_helper"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"text": Upper().run(str(input["text"]))}
