# tries: have nothing to run; seen by: invariants
# side effects: READ_ONLY
"""A skill of the corpus."""
from fluffy_skill import BaseSkill

class NoExecuteSkill(BaseSkill):
    name = "no_execute"
    description = "A skill of the corpus."
    side_effect_class = "READ_ONLY"
