"""Where a gold answer stands in a text: character spans, by the same token rule as sleuth.text.contains."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sleuth.text import normalise

Span = tuple[int, int]
"""Start and end in characters, end exclusive."""


def answer_spans(text: str, golds: Iterable[str]) -> list[Span]:
    """Spans of every occurrence of a gold, in order, merged where they overlap.

    There is one exactly if `contains(text, gold)` for some gold: normalising a text is
    normalising its words one by one, so each normalised token knows the word it came from.
    """
    tokens: list[tuple[str, Span]] = [
        (token, word.span())
        for word in re.finditer(r"\S+", text)
        for token in normalise(word.group()).split()
    ]
    found: set[Span] = set()
    for gold in golds:
        needle = normalise(gold).split()
        if not needle or needle in (["yes"], ["no"]):
            continue
        for i in range(len(tokens) - len(needle) + 1):
            if [token for token, _ in tokens[i : i + len(needle)]] == needle:
                found.add(_trimmed(text, tokens[i][1][0], tokens[i + len(needle) - 1][1][1]))
    return _merged(sorted(found))


def _trimmed(text: str, start: int, end: int) -> Span:
    """The span without the punctuation around its words."""
    while start < end - 1 and not text[start].isalnum():
        start += 1
    while end > start + 1 and not text[end - 1].isalnum():
        end -= 1
    return start, end


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
