# looks like: a test with fixtures and a patch of the skill
# side effects: READ_ONLY
from pathlib import Path

import pytest
import subject
from subject import SubjectSkill


@pytest.fixture
def skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SubjectSkill:
    made = SubjectSkill()
    monkeypatch.setattr(made, "folder", lambda name: tmp_path)
    monkeypatch.setattr(subject, "LIMIT", 3)
    monkeypatch.setattr("subject.LIMIT", 4)
    return made


@pytest.mark.parametrize("text", ["a", "b"])
def test_answers(skill: SubjectSkill, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    with open(tmp_path / "b.md", "w", encoding="utf-8") as out:
        out.write(text)
    assert skill.execute({"text": text}) == {"done": True}


def test_refuses() -> None:
    with pytest.raises(KeyError):
        raise KeyError("text")
