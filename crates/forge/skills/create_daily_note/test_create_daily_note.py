"""Tests of the notes of days."""

from pathlib import Path

import pytest
from create_daily_note import CreateDailyNoteSkill


def make(notes: Path, day: str = "2026-05-01", line: str | None = None) -> dict[str, object]:
    given: dict[str, object] = {"date": day}
    if line is not None:
        given["line"] = line
    return CreateDailyNoteSkill(folders={"notes": notes}).execute(given)


def test_a_day_has_a_note_with_its_date_in_front(tmp_path: Path) -> None:
    assert make(tmp_path) == {"note": "2026-05-01.md", "created": True, "added": False}
    text = (tmp_path / "2026-05-01.md").read_text(encoding="utf-8")
    assert text == '---\ntitle: "2026-05-01"\ntags: ["daily"]\ncreated: "2026-05-01"\n---\n\n'


def test_twice_is_once(tmp_path: Path) -> None:
    make(tmp_path, line="Saw a heron.")
    before = (tmp_path / "2026-05-01.md").read_bytes()
    again = make(tmp_path, line="  Saw a\theron. ")
    assert again == {"note": "2026-05-01.md", "created": False, "added": False}
    assert (tmp_path / "2026-05-01.md").read_bytes() == before
    assert make(tmp_path, line="Rain.")["added"] is True
    assert (tmp_path / "2026-05-01.md").read_text(encoding="utf-8").endswith("- Saw a heron.\n- Rain.\n")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_line_is_one_line(tmp_path: Path) -> None:
    make(tmp_path, line="one\n---\ntitle: evil")
    text = (tmp_path / "2026-05-01.md").read_text(encoding="utf-8")
    assert text.endswith("- one --- title: evil\n")


def test_what_a_person_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / "2026-05-01.md").write_text("Mine, without an end", encoding="utf-8")
    make(tmp_path, line="x")
    assert (tmp_path / "2026-05-01.md").read_text(encoding="utf-8") == "Mine, without an end\n- x\n"


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "../2026", "2026-5-1", "", "2026-05-01/..", "0000-01-01"])
def test_a_day_is_one_of_the_calendar(tmp_path: Path, day: str) -> None:
    with pytest.raises(ValueError):
        make(tmp_path, day)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_note_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "2026-05-01.md").mkdir()
    with pytest.raises(ValueError, match="no note"):
        make(tmp_path)
