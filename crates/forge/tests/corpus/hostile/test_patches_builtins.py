# tries: replace a builtin; seen by: policy
# side effects: READ_ONLY
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all(monkeypatch: object) -> None:
    monkeypatch.setattr("builtins.open", print)
