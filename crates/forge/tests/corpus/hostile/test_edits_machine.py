# tries: write a file of the machine; seen by: policy
# side effects: READ_ONLY
from pathlib import Path
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


def test_all() -> None:
    Path("/tmp/x").write_text("x")
