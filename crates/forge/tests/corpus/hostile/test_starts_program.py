# tries: start a program in a test; seen by: policy
# side effects: READ_ONLY
import subprocess
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all() -> None:
    assert subprocess.run(["id"])
