"""Conversation: earlier questions and answers in front of a follow-up question, and the searches it begins with.

    (Earlier in this conversation:
    Q: Which country has the capital San José?
    A: Costa Rica)
    And its highest point?

The text takes the place of the question in every protocol's prompt. Figures of the searches: docs/asking.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from sleuth.engines.base import Tokenizer
from sleuth.episodes.limits import Limits
from sleuth.text import neutralise
from sleuth.types import Exchange, Hit, Question

OPENING = "Earlier in this conversation:"
SHARE = 4
"""Earlier exchanges fill at most one part in this many of the context."""
MOST_CHARACTERS_A_TOKEN = 8
"""Characters per token of the limit above which a text is dropped without being tokenised."""
MOST_QUERY_CHARACTERS = 400
"""Longest part of an earlier question or answer in a query."""


def in_context(question: Question, tokenizer: Tokenizer, limits: Limits) -> str:
    """The neutralised question after the exchanges that fit, without history exactly the neutralised question.

    The oldest exchanges are dropped first. Each question and each answer is one line, so that none looks like two.
    """
    most, context, lines = limits.max_context // SHARE, "", list[str]()
    for exchange in reversed(question.history):
        lines = [*_lines(exchange), *lines]
        block = "\n".join([f"({OPENING}", *lines]) + ")\n"
        if len(block) > MOST_CHARACTERS_A_TOKEN * most or len(tokenizer.encode(block)) > most:
            break
        context = block
    return context + neutralise(question.text).strip()


def first_queries(question: Question) -> list[str]:
    """The question as a query; for a follow-up also with the last earlier question, and with its answer.

    One query of the whole conversation would find passages of earlier subjects.
    """
    own = neutralise(question.text).strip()
    before = (
        [_line(part)[:MOST_QUERY_CHARACTERS] for part in question.history[-1]] if question.history else []
    )
    return list(dict.fromkeys([own, *(f"{part} {own}" for part in before if part)]))


def interleaved(found: Sequence[Sequence[Hit]], count: int) -> list[Hit]:
    """The distinct hits of several searches, all first ones before all second ones: `count`, or one a search."""
    distinct: dict[str, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*found)):
        if hit is not None:
            distinct.setdefault(hit.passage.id, hit)
    return list(distinct.values())[: max(count, len(found))]


def _lines(exchange: Exchange) -> list[str]:
    question, answer = map(_line, exchange)
    return [f"Q: {question}", *([f"A: {answer}"] if answer else [])]


def _line(text: str) -> str:
    return " ".join(neutralise(text).split())
