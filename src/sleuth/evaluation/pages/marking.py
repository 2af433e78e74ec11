"""Gold answers in a text as character spans, by the same token rule as sleuth.text.contains."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sleuth.text import normalise

Span = tuple[int, int]
"""Start and end in characters, end exclusive."""


def answer_spans(text: str, golds: Iterable[str]) -> list[Span]:
    """Spans of every occurrence of a gold in order, merged where they overlap.

    There is one exactly if `contains(text, gold)` for some gold: a text is normalised word by word,
    so that each normalised token belongs to one word.
    """
    words = [(token, word) for word in re.finditer(r"\S+", text) for token in normalise(word[0]).split()]
    tokens = [token for token, _ in words]
    found: set[Span] = set()
    for needle in (normalise(gold).split() for gold in golds):
        if needle in ([], ["yes"], ["no"]):
            continue
        for i in range(len(tokens) - len(needle) + 1):
            if tokens[i : i + len(needle)] == needle:
                found.add(_trimmed(text, words[i][1].start(), words[i + len(needle) - 1][1].end()))
    merged: list[Span] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end - 1 and not text[start].isalnum():
        start += 1
    while end > start + 1 and not text[end - 1].isalnum():
        end -= 1
    return start, end
