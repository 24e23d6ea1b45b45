# tries: not run; seen by: policy
# side effects: READ_ONLY
import pytest
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


@pytest.mark.skip
def test_all() -> None:
    assert False
