"""Text → passages of bounded size, cut between paragraphs, else between sentences, else between words."""

from __future__ import annotations

import re
from collections.abc import Iterator

CHARACTERS_PER_WORD = 12
"""Twice English; bounds passages of text without spaces, which would otherwise be a single word."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|(?<=[。！？])")


def cut(text: str, max_words: int) -> Iterator[str]:
    """Passages of at most `max_words` words and 12 × as many characters, in order; no word is lost.

    Line ends inside a paragraph become spaces. Short neighbouring paragraphs share a passage.
    """
    room = max_words
    held: list[str] = []
    for paragraph in _PARAGRAPH.split(text):
        for piece in _fitting(" ".join(paragraph.split()), max_words):
            size = _size(piece)
            if size > room and held:
                yield " ".join(held)
                held, room = [], max_words
            held.append(piece)
            room -= size
    if held:
        yield " ".join(held)


def _size(piece: str) -> int:
    """In words; a long run without spaces counts as several."""
    return max(piece.count(" ") + 1, -(-(len(piece) + 1) // CHARACTERS_PER_WORD))


def _fitting(paragraph: str, most: int) -> Iterator[str]:
    """The paragraph, or its sentences, or runs of its words: each of at most `most`."""
    if not paragraph:
        return
    if _size(paragraph) <= most:
        yield paragraph
        return
    for sentence in _sentences(paragraph):
        if _size(sentence) <= most:
            yield sentence
        else:
            yield from _runs(sentence, most)


def _sentences(paragraph: str) -> Iterator[str]:
    start = 0
    for border in _SENTENCE.finditer(paragraph):
        yield paragraph[start : border.end()].strip()
        start = border.end()
    if rest := paragraph[start:].strip():
        yield rest


def _runs(sentence: str, most: int) -> Iterator[str]:
    """Words up to `most`; a word longer than a whole passage is cut like any other text."""
    longest = most * CHARACTERS_PER_WORD - 1
    words = (w[i : i + longest] for w in sentence.split(" ") for i in range(0, len(w), longest))
    run: list[str] = []
    size = 0
    for word in words:
        needed = len(word) + 1
        if run and (len(run) == most or size + needed > most * CHARACTERS_PER_WORD):
            yield " ".join(run)
            run, size = [], 0
        run.append(word)
        size += needed
    yield " ".join(run)
