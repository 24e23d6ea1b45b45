# looks like: writing to memory is not writing
# side effects: READ_ONLY
"""A skill of the corpus."""
import csv
import io
from fluffy_skill import BaseSkill

class BuffersSkill(BaseSkill):
    name = "buffers"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        out = io.StringIO()
        rows = csv.writer(out)
        rows.writerow(["a", "b"])
        out.write("end")
        raw = io.BytesIO(out.getvalue().encode())
        return {"text": out.getvalue(), "n": len(raw.getvalue())}
