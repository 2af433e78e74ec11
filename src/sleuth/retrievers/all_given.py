"""Every paragraph that comes with a question, in data-set order: nothing is searched.

For methods that read all given paragraphs and refer to them by number (ARENA). Searching would
reorder them and leave out those that share no word with the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.types import Hit, Passage, Question


@dataclass(frozen=True)
class AllGiven(Retriever):
    """Hands out the paragraphs of a question as they stand."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Always RetrievalError: there is nothing to hand out before `for_question`."""
        raise RetrievalError("given paragraphs exist only for a question that brings them; use an index")

    def for_question(self, question: Question) -> Retriever:
        """The question's paragraphs; RetrievalError if it has none."""
        if not question.passages:
            raise RetrievalError(f"question {question.id!r} comes without passages; use an index instead")
        return InOrder(question.passages)

    def identity(self) -> dict[str, str]:
        """Its name: there is nothing to tune."""
        return {"retriever": "given-all"}


@dataclass(frozen=True)
class InOrder(Retriever):
    """A fixed list of passages."""

    passages: tuple[Passage, ...]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The first k passages for every query, each with score 0: their order says nothing of their worth."""
        hits = [Hit(passage, 0.0) for passage in self.passages[: check_k(k)]]
        return [list(hits) for _ in check_queries(queries)]
