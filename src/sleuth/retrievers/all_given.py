"""AllGiven: every paragraph that comes with a question, in data-set order, without a search.

For methods that refer to paragraphs by number (ARENA); a search would reorder them and drop some.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.types import Hit, Passage, Question


@dataclass(frozen=True)
class AllGiven(Retriever):
    """Returns a question's paragraphs in their order."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        raise RetrievalError("given paragraphs exist only for a question that has them; use an index")

    def for_question(self, question: Question) -> Retriever:
        if not question.passages:
            raise RetrievalError(f"question {question.id!r} comes without passages; use an index instead")
        return InOrder(question.passages)

    def identity(self) -> dict[str, str]:
        return {"retriever": "given-all"}


@dataclass(frozen=True)
class InOrder(Retriever):
    """A fixed list of passages."""

    passages: tuple[Passage, ...]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The first k passages for every query, each with score 0."""
        hits = [Hit(passage, 0.0) for passage in self.passages[: check_k(k)]]
        return [list(hits) for _ in check_queries(queries)]
