# looks like: comprehensions, slices, stars and walrus
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class ComprehensionsSkill(BaseSkill):
    name = "comprehensions"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        numbers = [int(m) for n in str(input["numbers"]).split() if (m := n.strip())]
        first, *rest = numbers or [0]
        pairs = {a: b for a, b in zip(rest[::2], rest[1::2], strict=False)}
        return {"first": first, "pairs": {str(k): v for k, v in pairs.items()}, "total": sum(x * y for x in rest for y in (1, 2))}
