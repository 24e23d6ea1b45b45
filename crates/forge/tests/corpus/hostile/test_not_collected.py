# tries: not be collected; seen by: policy
# side effects: READ_ONLY
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"

__test__ = False
