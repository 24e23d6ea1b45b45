# tries: hand marks on before they are used; seen by: policy
# side effects: READ_ONLY
import pytest
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"

mark = pytest.mark


@mark.skip
def test_all() -> None:
    assert False
