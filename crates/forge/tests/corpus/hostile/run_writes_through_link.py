# tries: write through a link that lies in its folder; seen by: run
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class RunWritesThroughLinkSkill(BaseSkill):
    name = "run_writes_through_link"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        (self.folder("notes") / str(input["name"])).write_text("x")
        return {}
