# tries: leave a test before its claim; seen by: policy
# side effects: READ_ONLY
from unittest import TestCase
from subject import SubjectSkill


def test_name() -> None:
    assert SubjectSkill.name == "subject"


class TestAll(TestCase):
    def test_all(self) -> None:
        self.skipTest("later")
        assert False
