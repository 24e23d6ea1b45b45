"""Finds the notes that are about something.

With a model, notes and question become vectors, and the nearest by the cosine of their angle are the best. Without one,
words decide: a note scores for every word of the question that is in it, more for rare words and for words in its title
(three times) and its tags (twice), less for words that are repeated and for long notes (BM25 with k = 1.2, b = 0.75). Both
are deterministic: scores have six digits, and notes of one score are in the order of their names.
"""

import json
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fluffy_skill import BaseSkill, Model, ModelUnavailable

LARGEST = 256 * 1024
MOST_NOTES = 900
TEXTS_AT_ONCE = 64
LONGEST_ASKED = 4000
LONGEST_EXCERPT = 300
USUAL = 10


@dataclass(frozen=True)
class Note:
    """A note of the vault."""

    name: str
    title: str
    tags: list[str]
    created: str
    text: str


def value_of(text: str) -> object:
    """Gives a value of the front matter: JSON, or what somebody wrote by hand."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    return value


def words_of(value: object) -> list[str]:
    """Gives the tags of a value: a list, or words with commas between them."""
    if isinstance(value, str):
        value = value.strip("[] ").split(",")
    if not isinstance(value, list):
        return []
    tags = [str(tag).strip().strip("\"'").lower() for tag in value]
    return [tag for tag in tags if tag]


def note_of(name: str, whole: str) -> Note:
    """Reads a note; one without front matter is called by the name of its file."""
    front: dict[str, object] = {}
    lines = whole.replace("\r\n", "\n").split("\n")
    ends = [number for number, line in enumerate(lines) if number > 0 and line.rstrip() == "---"]
    body = lines
    if lines[0].rstrip() == "---" and ends:
        body = lines[ends[0] + 1 :]
        for line in lines[1 : ends[0]]:
            key, colon, value = line.partition(":")
            if colon:
                front[key.strip()] = value_of(value)
    title, created = front.get("title"), front.get("created")
    return Note(
        name=name,
        title=str(title) if isinstance(title, (str, int)) else name.removesuffix(".md"),
        tags=words_of(front.get("tags")),
        created=str(created) if isinstance(created, (str, int)) else "",
        text="\n".join(body).strip("\n"),
    )


def notes_in(folder: Path) -> list[Note]:
    """Reads the notes of a folder by name: plain Markdown files directly in it, none through a link, none too large."""
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        plain = path.name.endswith(".md") and not path.name.startswith(".")
        if plain and not path.is_symlink() and path.is_file() and path.stat().st_size <= LARGEST:
            found.append(note_of(path.name, path.read_text(encoding="utf-8", errors="replace")))
        if len(found) > MOST_NOTES:
            raise ValueError(f"the vault has more than {MOST_NOTES} notes")
    return found


def words(text: str) -> list[str]:
    """Gives the words of a text, without case and without the difference between spellings of a letter."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def by_words(query: str, notes: list[Note]) -> list[float]:
    """Scores notes by the words of a question."""
    counted = []
    for note in notes:
        counts = Counter(words(note.text))
        for word in words(note.title):
            counts[word] += 3
        for word in words(" ".join(note.tags)):
            counts[word] += 2
        counted.append(counts)
    lengths = [sum(counts.values()) for counts in counted]
    usual = max(sum(lengths) / max(len(lengths), 1), 1.0)
    scores = [0.0] * len(notes)
    for word in sorted(set(words(query))):
        having = sum(1 for counts in counted if word in counts)
        weight = math.log(1 + (len(notes) - having + 0.5) / (having + 0.5))
        for place, counts in enumerate(counted):
            count = counts.get(word, 0)
            if count:
                damped = count + 1.2 * (0.25 + 0.75 * lengths[place] / usual)
                scores[place] += weight * count * 2.2 / damped
    return scores


def cosine(one: list[float], other: list[float]) -> float:
    """Gives how near two vectors are, from -1 to 1."""
    lengths = math.hypot(*one) * math.hypot(*other)
    if len(one) != len(other) or lengths == 0 or not math.isfinite(lengths):
        raise ModelUnavailable("the model's vectors cannot be compared")
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths


def by_model(query: str, notes: list[Note], model: Model) -> list[float]:
    """Scores notes by what a model makes of them."""
    texts = [query, *(f"{note.title}\n{' '.join(note.tags)}\n{note.text}" for note in notes)]
    vectors: list[list[float]] = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        asked = [text[:LONGEST_ASKED] for text in texts[start : start + TEXTS_AT_ONCE]]
        answer = model.embed(asked)
        if len(answer) != len(asked):
            raise ModelUnavailable("the model gave another number of vectors")
        vectors.extend(answer)
    return [cosine(vectors[0], vector) for vector in vectors[1:]]


class SearchNotesSkill(BaseSkill):
    """Searches the notes."""

    name = "search_notes"
    description = (
        "Finds the notes of the vault that are about something, the best first: by meaning where a "
        "local model is there, by words where there is none."
    )
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Gives the best notes, and what found them."""
        query, limit = str(input["query"]), int(str(input.get("limit", USUAL)))
        if not words(query):
            raise ValueError("there is no word in the question")
        notes = notes_in(self.folder("notes"))
        method = "embedding"
        try:
            scores = by_model(query, notes, self.model)
        except ModelUnavailable:
            method, scores = "lexical", by_words(query, notes)
        ranked = [(round(score, 6), note) for score, note in zip(scores, notes, strict=True)]
        best = sorted((it for it in ranked if it[0] > 0), key=lambda it: (-it[0], it[1].name))
        told = [
            {
                "note": note.name,
                "title": note.title,
                "score": score,
                "excerpt": " ".join(note.text.split())[:LONGEST_EXCERPT],
            }
            for score, note in best[:limit]
        ]
        return {"method": method, "results": told}
