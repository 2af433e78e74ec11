"""Whether a retriever can find gold passages at all, before a run whose reward scores searches by them."""

from collections.abc import Sequence

from sleuth.errors import ConfigError
from sleuth.gold import gold_shown
from sleuth.retrievers.base import Retriever
from sleuth.types import Question

QUESTIONS = 32
"""Questions that are tried."""
DEPTH = 20
"""Passages looked at for each gold one."""


LEAST = 0.9
"""Share of the gold passages that must be found: searches for the others would be scored as misses."""


def check_gold(questions: Sequence[Question], retriever: Retriever, name: str) -> str:
    """How many gold passages of the first questions are found, as one line.

    Each search uses the title and text of the gold passages, else the queries of the hops, else the question.
    Raises ConfigError for a share below LEAST.
    """
    some = [q for q in questions if q.gold_ids][:QUESTIONS]
    found = wanted = 0
    for question in some:
        wanted += len(question.gold_ids)
        found += len(_found(question, retriever))
    if found < LEAST * wanted or not wanted:
        what = (
            f"only {found} of {wanted} gold passages are found by title and text, or by id"
            if some
            else "no question has gold_ids"
        )
        raise ConfigError(
            f"{name} scores searches by gold passages, and {what}: use an index of these passages, or retriever=given"
        )
    return f"{found} of {wanted} gold passages are found in the index"


def _found(question: Question, retriever: Retriever) -> set[str]:
    golds = [p for p in question.passages if p.id in question.gold_ids]
    texts = [f"{p.title} {' '.join(p.text.split()[:24])}" for p in golds]
    queries = texts or [hop.query for hop in question.hops] or [question.text]
    hits = retriever.for_question(question).search(queries, DEPTH)
    return gold_shown(question, [hit.passage for own in hits for hit in own])
