# looks like: a test that hands folders and secrets to the skill
# side effects: READ_ONLY
from pathlib import Path

import pytest
from fluffy_skill import NotDeclared
from subject import SubjectSkill


def test_answers(tmp_path: Path) -> None:
    skill = SubjectSkill(folders={"notes": tmp_path}, secrets={"API_KEY": "test"})
    assert skill.execute({}) == {}
    assert (tmp_path / "a.md").exists() is False


def test_refuses() -> None:
    with pytest.raises(NotDeclared):
        SubjectSkill(folders={}).folder("notes")
