# looks like: its own private methods are its own
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class _Store:
    def __init__(self) -> None:
        self._items: list[str] = []

    def _add(self, item: str) -> None:
        self._items.append(item)

class PrivateMethodsSkill(BaseSkill):
    name = "private_methods"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def _clean(self, text: str) -> str:
        return text.strip()

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        store = _Store()
        store._add(self._clean(str(input["text"])))
        return {"items": store._items}
