# looks like: datetime.datetime and time.time have the names of modules
# side effects: READ_ONLY
"""A skill of the corpus."""
import copy
import datetime
import time
import pprint
from fluffy_skill import BaseSkill

class DatesAndTimesSkill(BaseSkill):
    name = "dates_and_times"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        now = datetime.datetime.fromtimestamp(time.time())
        later = copy.copy(now) + datetime.timedelta(days=1)
        return {"now": now.isoformat(), "time": str(datetime.time(1, 2)), "later": pprint.pformat(later)}
