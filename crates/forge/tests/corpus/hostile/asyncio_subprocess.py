# tries: start a program with asyncio; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import asyncio
from fluffy_skill import BaseSkill

class AsyncioSubprocessSkill(BaseSkill):
    name = "asyncio_subprocess"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        asyncio.run(asyncio.create_subprocess_shell("id"))
        return {}
