# tries: load plugins of its own; seen by: policy
# side effects: READ_ONLY
pytest_plugins = ["evil"]
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"
