# looks like: temporary files where files may be written
# side effects: FILE_WRITE
"""A skill of the corpus."""
import shutil
import tempfile
from fluffy_skill import BaseSkill

class TemporaryFileSkill(BaseSkill):
    name = "temporary_file"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        with tempfile.NamedTemporaryFile("w", suffix=".md") as out:
            out.write("x")
            out.flush()
            shutil.copyfile(out.name, self.folder("notes") / "x.md")
        return {}
