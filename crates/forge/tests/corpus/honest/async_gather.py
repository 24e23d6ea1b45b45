# looks like: waiting for several things
# side effects: READ_ONLY
"""A skill of the corpus."""
import asyncio
from fluffy_skill import BaseSkill

class AsyncGatherSkill(BaseSkill):
    name = "async_gather"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    async def _one(self, n: int) -> int:
        await asyncio.sleep(0)
        return n * 2

    async def _all(self) -> list[int]:
        return await asyncio.gather(*(self._one(n) for n in range(3)))

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        return {"all": asyncio.run(self._all())}
