# tries: replace the base; seen by: policy
# side effects: READ_ONLY
from fluffy_skill import BaseSkill
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all(monkeypatch: object) -> None:
    monkeypatch.setattr(BaseSkill, "secret", print)
