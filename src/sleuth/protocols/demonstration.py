"""Warm-start demonstrations: the wording of an expert who knows the gold hops.

Every sentence is ours and short, because at CPU scale each token of a demonstration is paid
for in every update. A demonstration exists only where the gold searches really find the gold
passages with the retriever in use.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.text import contains, normalise
from sleuth.types import Hit, Hop, Passage, Question


@dataclass(frozen=True, slots=True)
class Script:
    """Sentence templates of a demonstration."""

    plan: str = "I need to find {need}."
    """First thought; {need} is the hop's need. A sentence that begins with a line end begins a line."""
    found: str = "Doc {number}: {quote}"
    """Cites the passage that answers a hop."""
    missing: str = "Still missing: {need}."
    """Names the gap that the next search must close."""
    enough: str = "This is sufficient."
    """Closes the last note."""
    quote_words: int = 24
    """Most words quoted from a passage."""


def write_turn(script: Script, note: str, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
    """The next demonstrated turn after `shown` searches, or None if it cannot be demonstrated."""
    hops, done = question.hops, len(shown)
    if not hops or not question.answers or done > len(hops):
        return None
    evidence = _cite(script, hops[done - 1], shown[done - 1]) if done else ""
    if evidence is None:
        return None
    tag = note if done and note else "think"
    if done == len(hops):
        closed = _joined(evidence, script.enough if note else "")
        return f"<{tag}>{closed}</{tag}><answer>{question.answers[0]}</answer>"
    gap = (script.missing if done else script.plan).format(need=hops[done].need or hops[done].query)
    return f"<{tag}>{_joined(evidence, gap)}</{tag}><search>{hops[done].query}</search>"


def _joined(*sentences: str) -> str:
    return " ".join(sentences).replace(" \n", "\n").strip()


def _cite(script: Script, hop: Hop, hits: Sequence[Hit]) -> str | None:
    """The passage that answers the hop, quoted around its answer; None if it was not found."""
    found = (i for i, hit in enumerate(hits) if hit.passage.id == hop.passage_id)
    if (place := next(found, None)) is None:
        return None
    quote = quote_around(hits[place].passage, hop.answer, script.quote_words)
    return script.found.format(number=place + 1, quote=quote)


def quote_around(passage: Passage, answer: str, most_words: int) -> str:
    """The part of a passage that holds the answer, after the title, so that it can be read alone."""
    parts = [p for p in re.split(r"(?<=[.;!?])\s+", passage.text) if p.strip()]
    best = next((p for p in parts if answer and contains(p, answer)), parts[0] if parts else "")
    words = best.split()
    if len(words) > most_words:
        words = _window(words, answer, most_words)
    return f"{passage.title}: {' '.join(words)}".rstrip(";. ") + "."


def _window(words: Sequence[str], answer: str, most: int) -> list[str]:
    """`most` consecutive words that include the answer if they can."""
    size = len(normalise(answer).split()) or 1
    for start in range(len(words)):
        if contains(" ".join(words[start : start + size + 2]), answer):
            left = max(0, min(start - (most - size) // 2, len(words) - most))
            return list(words[left : left + most])
    return list(words[:most])
