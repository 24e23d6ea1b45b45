# tries: change where modules come from; seen by: policy
# side effects: READ_ONLY
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all(monkeypatch: object) -> None:
    monkeypatch.syspath_prepend("elsewhere")
