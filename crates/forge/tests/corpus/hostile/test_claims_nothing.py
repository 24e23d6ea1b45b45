# tries: claim nothing; seen by: invariants
# side effects: READ_ONLY
from subject import SubjectSkill


def test_name() -> None:
    SubjectSkill()
