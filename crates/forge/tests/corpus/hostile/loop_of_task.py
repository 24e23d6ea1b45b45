# tries: start a program by the loop of a task; seen by: policy
# side effects: READ_ONLY
"""A skill of the corpus."""
import asyncio
from fluffy_skill import BaseSkill

class LoopOfTaskSkill(BaseSkill):
    name = "loop_of_task"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    async def work(self, task: object) -> None:
        await task.get_loop().subprocess_shell(None, "id")

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        asyncio.run(self.work(None))
        return {}
