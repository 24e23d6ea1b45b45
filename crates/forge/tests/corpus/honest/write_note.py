# looks like: writing below a folder with the right side effects
# side effects: FILE_WRITE
"""A skill of the corpus."""
import datetime
import json
from fluffy_skill import BaseSkill

class WriteNoteSkill(BaseSkill):
    name = "write_note"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        folder = self.folder("notes")
        folder.mkdir(parents=True, exist_ok=True)
        stamp = datetime.datetime(2025, 1, 2).isoformat()
        path = folder / f"{input['title']}.md"
        path.write_text(f"# {input['title']}\n", encoding="utf-8")
        with open(folder / "log.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps({"at": stamp}) + "\n")
        return {"path": path.name}
