# tries: write a file of the machine; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class OpenEtcSkill(BaseSkill):
    name = "open_etc"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        with open("/etc/x", "w") as out:
            out.write("x")
        return {}
