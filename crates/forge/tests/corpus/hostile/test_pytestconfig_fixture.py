# tries: change the harness through its settings; seen by: policy
# side effects: READ_ONLY
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all(pytestconfig: object) -> None:
    assert pytestconfig
