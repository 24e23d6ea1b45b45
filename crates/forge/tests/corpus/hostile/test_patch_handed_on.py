# tries: hand a patch on before it is used; seen by: policy
# side effects: READ_ONLY
from unittest.mock import patch
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"

replace = patch


@replace("builtins.open")
def test_all(opened: object) -> None:
    assert opened
