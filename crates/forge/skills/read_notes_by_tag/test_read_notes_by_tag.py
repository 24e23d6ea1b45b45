"""Tests of reading notes by tag."""

from pathlib import Path

import pytest
from fluffy_skill import NotDeclared
from read_notes_by_tag import ReadNotesByTagSkill, note_of


def keep(notes: Path, name: str, tags: str, created: str, text: str = "x") -> None:
    front = f'---\ntitle: "{name}"\ntags: {tags}\ncreated: "{created}"\n---\n\n{text}\n'
    (notes / f"{name}.md").write_text(front, encoding="utf-8")


def read(notes: Path, tag: str, **more: object) -> dict[str, object]:
    return ReadNotesByTagSkill(folders={"notes": notes}).execute({"tag": tag, **more})


def names(found: dict[str, object]) -> list[str]:
    notes = found["notes"]
    assert isinstance(notes, list)
    return [note["note"] for note in notes]


def test_the_newest_come_first_and_others_not_at_all(tmp_path: Path) -> None:
    keep(tmp_path, "a", '["garden"]', "2026-05-01")
    keep(tmp_path, "b", '["garden", "home"]', "2026-05-03")
    keep(tmp_path, "c", '["home"]', "2026-05-02")
    found = read(tmp_path, "Garden")
    assert found["found"] == 2
    assert names(found) == ["b.md", "a.md"]
    assert names(read(tmp_path, "gard")) == []
    assert names(read(tmp_path, "garden", limit=1)) == ["b.md"]


def test_all_of_a_note_is_told(tmp_path: Path) -> None:
    keep(tmp_path, "a", '["garden"]', "2026-05-01", "One.\n\nTwo.")
    expected = {"note": "a.md", "title": "a", "tags": ["garden"], "created": "2026-05-01", "text": "One.\n\nTwo."}
    assert read(tmp_path, "garden")["notes"] == [{**expected, "cut": False}]


def test_a_long_note_is_cut_and_says_so(tmp_path: Path) -> None:
    keep(tmp_path, "a", '["x"]', "2026-05-01", "é" * 5000)
    notes = read(tmp_path, "x")["notes"]
    assert isinstance(notes, list)
    assert (len(notes[0]["text"]), notes[0]["cut"]) == (4000, True)


@pytest.mark.parametrize("tags", ["garden, home", "[garden, home]", "['home', \"Garden\"]", '["GARDEN"]'])
def test_tags_written_by_hand_are_tags(tmp_path: Path, tags: str) -> None:
    keep(tmp_path, "a", tags, "2026-05-01")
    assert names(read(tmp_path, "garden")) == ["a.md"]


@pytest.mark.parametrize("whole", ["", "---", "---\n---", "tags: garden", "---\ntags: garden\n", "---\ntags: 3\n---\n"])
def test_what_has_no_tags_is_not_found(tmp_path: Path, whole: str) -> None:
    (tmp_path / "a.md").write_text(whole, encoding="utf-8")
    assert read(tmp_path, "garden")["found"] == 0
    assert note_of("a.md", whole).title == "a"


def test_a_vault_that_is_not_there_is_empty_and_other_files_are_no_notes(tmp_path: Path) -> None:
    assert read(tmp_path / "none", "garden") == {"found": 0, "notes": []}
    (tmp_path / "garden.txt").write_text("---\ntags: garden\n---\n", encoding="utf-8")
    (tmp_path / ".garden.md").write_text("---\ntags: garden\n---\n", encoding="utf-8")
    (tmp_path / "deep.md").mkdir()
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe---")
    assert read(tmp_path, "garden")["found"] == 0


def test_without_its_folder_it_reads_nothing() -> None:
    with pytest.raises(NotDeclared):
        ReadNotesByTagSkill().execute({"tag": "x"})
