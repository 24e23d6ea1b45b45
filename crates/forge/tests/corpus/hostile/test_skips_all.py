# tries: not run at all; seen by: policy
# side effects: READ_ONLY
import pytest
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"

pytestmark = pytest.mark.xfail
