"""Tests of the skill."""

from pathlib import Path

import pytest
from write_note import WriteNoteSkill


@pytest.mark.parametrize("title", ["a", "b"])
def test_a_note_is_written(tmp_path: Path, title: str) -> None:
    skill = WriteNoteSkill(folders={"notes": tmp_path})
    out = skill.execute({"title": title})
    assert (tmp_path / str(out["path"])).exists()


class TestWithoutInput:
    def test_a_title_is_needed(self) -> None:
        with pytest.raises(KeyError):
            WriteNoteSkill(folders={}).execute({})
