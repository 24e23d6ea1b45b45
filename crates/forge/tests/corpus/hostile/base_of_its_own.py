# tries: extend a base that is not ours; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
class BaseSkill:
    pass

class BaseOfItsOwnSkill(BaseSkill):
    name = "base_of_its_own"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
