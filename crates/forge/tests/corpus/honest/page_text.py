# looks like: a class that extends one of the library
# side effects: READ_ONLY
"""A skill of the corpus."""
from html.parser import HTMLParser
from fluffy_skill import BaseSkill

class Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

class PageTextSkill(BaseSkill):
    name = "page_text"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        text = Text()
        text.feed(str(input["html"]))
        return {"text": "".join(text.parts)}
