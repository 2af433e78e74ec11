"""Passages of bounded size from text, cut between paragraphs, else between sentences, else between words."""

import re
from collections.abc import Iterable, Iterator

CHARACTERS_PER_WORD = 12
"""Twice the English average. It bounds text without spaces, which would otherwise be a single word."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"((?<=[.!?])[\"'”’)\]]*) |(?<=[。！？]) ?")


def cut(text: str, max_words: int) -> Iterator[str]:
    """Yield passages of at most `max_words` words and 12 × as many characters, in order; no word is lost.

    Line ends inside a paragraph become spaces. Short neighbouring paragraphs share a passage.
    """
    paragraphs = (" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(text))
    return _packed((piece for each in paragraphs for piece in _fitting(each, max_words)), max_words)


def _packed(pieces: Iterable[str], most: int) -> Iterator[str]:
    held = ""
    for piece in pieces:
        joined = f"{held} {piece}" if held else piece
        if held and _size(joined) > most:
            yield held
            joined = piece
        held = joined
    if held:
        yield held


def _size(piece: str) -> int:
    return max(piece.count(" ") + 1, -(-(len(piece) + 1) // CHARACTERS_PER_WORD))


def _fitting(paragraph: str, most: int) -> Iterator[str]:
    """Yield the paragraph, or its sentences, or runs of its words, each of at most `most` words."""
    longest = most * CHARACTERS_PER_WORD - 1
    pieces = [paragraph] if _size(paragraph) <= most else _SENTENCE.sub(r"\1\n", paragraph).split("\n")
    for piece in pieces:
        if piece and _size(piece) <= most:
            yield piece
        elif piece:
            words = (w[i : i + longest] for w in piece.split(" ") for i in range(0, len(w), longest))
            yield from _packed(words, most)
