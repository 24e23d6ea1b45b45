# looks like: a test with a mock of what the skill imports
# side effects: READ_ONLY
from unittest.mock import MagicMock, patch

from subject import SubjectSkill


class TestSubject:
    @patch("subject.urlopen")
    def test_name(self, urlopen: MagicMock) -> None:
        urlopen.return_value.read.return_value = b"{}"
        with patch.object(SubjectSkill, "execute", return_value={}) as execute:
            assert SubjectSkill().execute({}) == {}
        execute.assert_called_once()
