# looks like: threads are allowed
# side effects: READ_ONLY
"""A skill of the corpus."""
from concurrent.futures import ThreadPoolExecutor
import threading
import queue
from fluffy_skill import BaseSkill

class ThreadPoolSkill(BaseSkill):
    name = "thread_pool"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        lock = threading.Lock()
        done: queue.Queue[int] = queue.Queue()
        with ThreadPoolExecutor(max_workers=2) as pool:
            for size in pool.map(len, ["a", "bb"]):
                with lock:
                    done.put(size)
        return {"n": done.qsize()}
