# tries: hand setattr on before it is used; seen by: policy
# side effects: READ_ONLY
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all(monkeypatch: object) -> None:
    replace = monkeypatch.setattr
    replace("builtins.open", print)
