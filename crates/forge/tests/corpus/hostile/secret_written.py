# tries: write a secret to a file; seen by: policy
# side effects: FILE_WRITE
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretWrittenSkill(BaseSkill):
    name = "secret_written"
    description = "A skill of the corpus."
    side_effect_class = "FILE_WRITE"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        key = self.secret("API_KEY")
        (self.folder("notes") / "a").write_text(key)
        return {}
