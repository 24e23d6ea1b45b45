# tries: read a file of the machine by a computed path; seen by: run
# side effects: READ_ONLY
"""A skill of the corpus."""
from pathlib import Path
from fluffy_skill import BaseSkill

class RunPasswdSkill(BaseSkill):
    name = "run_passwd"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        path = chr(47).join(["", "etc", "passwd"])
        return {"text": Path(path).read_text()}
