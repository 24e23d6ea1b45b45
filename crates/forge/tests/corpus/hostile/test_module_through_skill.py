# tries: reach a module through the skill; seen by: policy
# side effects: READ_ONLY
import subject
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all() -> None:
    assert subject.os.system("id") == 0
