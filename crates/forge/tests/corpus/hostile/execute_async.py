# tries: answer with something to wait for; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ExecuteAsyncSkill(BaseSkill):
    name = "execute_async"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    async def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"done": True}
