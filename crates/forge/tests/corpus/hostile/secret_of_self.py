# tries: print a secret that was kept; seen by: policy
# side effects: SECRET_READ
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class SecretOfSelfSkill(BaseSkill):
    name = "secret_of_self"
    description = "A skill of the corpus."
    side_effect_class = "SECRET_READ"

    def show(self) -> None:
        print("key", self.key)

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        self.key = self.secret("API_KEY")
        self.show()
        return {}
