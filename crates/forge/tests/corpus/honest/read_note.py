# looks like: open for reading is reading
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ReadNoteSkill(BaseSkill):
    name = "read_note"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        path = self.folder("notes") / str(input["name"])
        with open(path, "r", encoding="utf-8") as file:
            first = file.readline()
        with path.open() as file:
            rest = file.read()
        return {"first": first, "rest": rest}
