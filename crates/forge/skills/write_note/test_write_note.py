"""Tests of writing notes."""

import re
from pathlib import Path

import pytest
from write_note import WriteNoteSkill, name_of, title_in


def write(notes: Path, **more: object) -> dict[str, object]:
    given: dict[str, object] = {"title": "Plans for May", "text": "Dig.\n", "created": "2026-05-01", **more}
    return WriteNoteSkill(folders={"notes": notes}).execute(given)


def test_a_note_has_its_title_tags_and_date_in_front(tmp_path: Path) -> None:
    assert write(tmp_path, tags=["garden", "spring"]) == {"note": "plans-for-may.md", "replaced": False}
    text = (tmp_path / "plans-for-may.md").read_text(encoding="utf-8")
    assert text == (
        '---\ntitle: "Plans for May"\ntags: ["garden", "spring"]\ncreated: "2026-05-01"\n---\n\nDig.\n'
    )


def test_without_a_date_it_is_of_today(tmp_path: Path) -> None:
    write(tmp_path, created=None)
    text = (tmp_path / "plans-for-may.md").read_text(encoding="utf-8")
    assert re.search(r'^created: "20[0-9]{2}-[0-9]{2}-[0-9]{2}"$', text, re.MULTILINE)


def test_a_note_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(FileExistsError, match="already"):
        write(tmp_path, text="Other.")
    assert "Dig." in (tmp_path / "plans-for-may.md").read_text(encoding="utf-8")
    assert write(tmp_path, text="Other.", overwrite=True)["replaced"] is True
    assert "Other." in (tmp_path / "plans-for-may.md").read_text(encoding="utf-8")


def test_a_note_of_another_title_is_never_replaced(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(ValueError, match="another title"):
        write(tmp_path, title="Plans, for May!", overwrite=True)
    assert title_in((tmp_path / "plans-for-may.md").read_text(encoding="utf-8")) == "Plans for May"


@pytest.mark.parametrize("title", ["../../evil", "/tmp/evil", "a\\..\\b", "..", ".hidden", "~root", "%2e%2e%2f"])
def test_no_title_leads_out_of_the_folder(tmp_path: Path, title: str) -> None:
    notes = tmp_path / "deep" / "notes"
    notes.mkdir(parents=True)
    name = str(write(notes, title=title)["note"])
    assert re.fullmatch(r"[a-z0-9-]+\.md", name)
    assert [path.name for path in notes.iterdir()] == [name]
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize("title", ["", "   ", "a\nb", "a\x00b", 'x"\ntags: ["evil"]'])
def test_a_title_is_one_line(tmp_path: Path, title: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        write(tmp_path, title=title)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("created", ["2026-02-30", "2026-5-1", "today", "20260501"])
def test_a_date_is_one_of_the_calendar(tmp_path: Path, created: str) -> None:
    with pytest.raises(ValueError):
        write(tmp_path, created=created)
    assert list(tmp_path.iterdir()) == []


def test_a_tag_cannot_break_out_of_its_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a tag is made"):
        write(tmp_path, tags=['x"]\nevil: true'])


def test_every_title_has_a_name() -> None:
    assert name_of("Über Äpfel & Öl") == "uber-apfel-ol.md"
    assert name_of("日本語") != name_of("中文")
    assert re.fullmatch(r"note-[0-9a-f]{12}\.md", name_of("日本語"))
    assert len(name_of("word " * 100)) <= 83


def test_a_quoted_title_comes_back_as_it_was(tmp_path: Path) -> None:
    name = write(tmp_path, title='He said "no": 1 \\ 2')["note"]
    assert title_in((tmp_path / str(name)).read_text(encoding="utf-8")) == 'He said "no": 1 \\ 2'
