"""Tests of summaries."""

from pathlib import Path

import pytest
from fluffy_skill import Model
from summarize_note import SummarizeNoteSkill, extract, sentences_of

TEXT = """# Garden

The garden needs water every morning. Buy bread.

- The tomatoes in the garden need water and light!
- Call Ann.
"""


class Told(Model):
    """A model that says what it was told to."""

    def __init__(self, answer: str) -> None:
        self.answer, self.prompts = answer, [""]

    def generate(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.answer


def summarize(notes: Path, note: str = "garden.md", model: Model | None = None, **more: object) -> dict[str, object]:
    return SummarizeNoteSkill(folders={"notes": notes}, model=model).execute({"note": note, **more})


def keep(notes: Path, text: str = TEXT) -> None:
    (notes / "garden.md").write_text(f'---\ntitle: "My garden"\ntags: []\n---\n\n{text}', encoding="utf-8")


def test_without_a_model_the_note_speaks_for_itself(tmp_path: Path) -> None:
    keep(tmp_path)
    assert summarize(tmp_path, sentences=2) == {
        "note": "garden.md",
        "title": "My garden",
        "summary": "The garden needs water every morning. The tomatoes in the garden need water and light!",
        "method": "extractive",
    }
    assert summarize(tmp_path, sentences=2) == summarize(tmp_path, sentences=2)


def test_a_model_is_asked_about_the_note_and_its_words_are_given(tmp_path: Path) -> None:
    keep(tmp_path, TEXT + "x" * 20000)
    model = Told(" Water\n the garden. ")
    told = summarize(tmp_path, model=model)
    assert (told["summary"], told["method"]) == ("Water the garden.", "model")
    prompt = model.prompts[-1]
    assert "My garden" in prompt and "tomatoes" in prompt and len(prompt) < 8000


def test_a_model_that_says_nothing_is_as_none(tmp_path: Path) -> None:
    keep(tmp_path)
    assert summarize(tmp_path, model=Told(" \n ")) == summarize(tmp_path)


def test_a_model_that_says_too_much_is_cut(tmp_path: Path) -> None:
    keep(tmp_path)
    assert len(str(summarize(tmp_path, model=Told("word " * 5000))["summary"])) <= 2000


def test_an_empty_note_has_an_empty_summary(tmp_path: Path) -> None:
    keep(tmp_path, "")
    assert summarize(tmp_path, model=Told("made up"))["summary"] == ""


@pytest.mark.parametrize("note", ["../secret.md", "deep/er.md", ".hidden.md", "garden", "a\\b.md", "", ".md", "x\n.md"])
def test_a_note_is_named_by_its_file_alone(tmp_path: Path, note: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    with pytest.raises(ValueError, match="named by its file"):
        summarize(tmp_path / "notes", note)


def test_a_note_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no note `x\.md`"):
        summarize(tmp_path, "x.md")
    (tmp_path / "dir.md").mkdir()
    with pytest.raises(FileNotFoundError):
        summarize(tmp_path, "dir.md")


def test_sentences_end_where_they_end() -> None:
    assert sentences_of("# One\n\nTwo two. Three!\nand on\n- four\n---\n") == ["One", "Two two.", "Three!", "and on", "four"]
    assert extract("", 3) == ""
