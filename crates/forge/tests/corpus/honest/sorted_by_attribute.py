# looks like: attrgetter with a name that stands there
# side effects: READ_ONLY
"""A skill of the corpus."""
from operator import attrgetter, itemgetter
from pathlib import PurePath
from fluffy_skill import BaseSkill

class SortedByAttributeSkill(BaseSkill):
    name = "sorted_by_attribute"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        paths = sorted((PurePath(name) for name in ("b.md", "a.md")), key=attrgetter("name"))
        rows = sorted([{"n": 2}, {"n": 1}], key=itemgetter("n"))
        return {"names": [path.name for path in paths], "rows": rows}
