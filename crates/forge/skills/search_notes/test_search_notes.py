"""Tests of the search."""

from pathlib import Path

import pytest
from fluffy_skill import Model, ModelUnavailable
from search_notes import SearchNotesSkill, by_words, note_of


class Counting(Model):
    """A model for which a text is how often it speaks of cats and of ships."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(len(texts))
        return [[1.0 + text.count("kitten") + text.count("cat"), 1.0 + text.count("ship")] for text in texts]


class Broken(Model):
    """A model that gives too little."""

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[0.0] for _ in texts]


class Late(Model):
    """A model that goes away."""

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        if self.calls > 1:
            raise ModelUnavailable("gone")
        return [[1.0] for _ in texts]


def vault(notes: Path) -> Path:
    texts = {
        "cats": "The cat sleeps. A cat is not a dog.",
        "harbour": "A ship leaves the harbour at night.",
        "kitchen": "Bread, and butter, and a sleeping cat.",
    }
    for name, text in texts.items():
        (notes / f"{name}.md").write_text(f'---\ntitle: "About {name}"\ntags: ["{name}"]\n---\n\n{text}\n', encoding="utf-8")
    return notes


def search(notes: Path, query: str, model: Model | None = None, **more: object) -> tuple[str, list[str]]:
    found = SearchNotesSkill(folders={"notes": notes}, model=model).execute({"query": query, **more})
    results = found["results"]
    assert isinstance(results, list)
    return str(found["method"]), [result["note"] for result in results]


def test_without_a_model_words_decide(tmp_path: Path) -> None:
    assert search(vault(tmp_path), "cat") == ("lexical", ["cats.md", "kitchen.md"])
    assert search(tmp_path, "HARBOUR") == ("lexical", ["harbour.md"])
    assert search(tmp_path, "submarine") == ("lexical", [])
    assert search(tmp_path, "cat", limit=1) == ("lexical", ["cats.md"])


def test_with_a_model_meaning_decides(tmp_path: Path) -> None:
    model = Counting()
    method, names = search(vault(tmp_path), "kitten " * 4, model)
    assert (method, names[0]) == ("embedding", "cats.md")
    assert model.asked == [4]


def test_many_notes_are_asked_about_in_parts(tmp_path: Path) -> None:
    for number in range(150):
        (tmp_path / f"{number:03}.md").write_text("ship" if number == 77 else "sea", encoding="utf-8")
    model = Counting()
    assert search(tmp_path, "ship ship", model, limit=1) == ("embedding", ["077.md"])
    assert model.asked == [64, 64, 23]


def test_a_model_that_fails_is_as_none(tmp_path: Path) -> None:
    vault(tmp_path)
    assert search(tmp_path, "cat", Broken()) == search(tmp_path, "cat")
    for number in range(100):
        (tmp_path / f"{number:03}.md").write_text("sea", encoding="utf-8")
    assert search(tmp_path, "cat", Late()) == search(tmp_path, "cat")


def test_the_same_question_has_the_same_answer(tmp_path: Path) -> None:
    skill = SearchNotesSkill(folders={"notes": vault(tmp_path)})
    assert skill.execute({"query": "a sleeping cat"}) == skill.execute({"query": "a sleeping cat"})


def test_a_title_counts_more_than_the_text_and_equals_are_by_name() -> None:
    titled = note_of("a.md", '---\ntitle: "heron"\n---\n\nbird bird bird')
    spoken = note_of("b.md", '---\ntitle: "bird"\n---\n\nheron bird bird')
    scores = by_words("heron", [titled, spoken])
    assert scores[0] > scores[1] > 0
    assert by_words("heron", [spoken, spoken])[0] == by_words("heron", [spoken, spoken])[1]


@pytest.mark.parametrize("query", [" ", "?!", "---"])
def test_a_question_has_words(tmp_path: Path, query: str) -> None:
    with pytest.raises(ValueError, match="no word"):
        search(tmp_path, query)


def test_an_empty_vault_has_no_answer(tmp_path: Path) -> None:
    assert search(tmp_path / "none", "cat") == ("lexical", [])
