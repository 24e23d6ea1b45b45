# tries: have a shared module stand on the base; seen by: invariants
# side effects: READ_ONLY
"""A shared module."""

from fluffy_skill import BaseSkill

BASE = BaseSkill
