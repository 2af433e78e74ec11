"""Another retriever without a question's gold passages: what a method does when the evidence is missing.

The gold answer stays what it was; only the way to it is gone. Another passage may still hold it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sleuth.errors import ConfigError
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.given import GivenParagraphs
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class Withholding(Around):
    """The retriever's best k passages that are not withheld."""

    retriever: Retriever = field(default_factory=GivenParagraphs)
    """Who finds them."""
    withheld: int = 1
    """Gold passages of each question that are never found, 0 or more; all of them if it has no more."""
    ids: tuple[str, ...] = ()
    """Set by `for_question`: the passages withheld."""

    def __post_init__(self) -> None:
        if self.withheld < 0:
            raise ConfigError(f"withholding.withheld must be 0 or more, not {self.withheld}")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k passages besides the withheld ones, which leave no gap."""
        queries, k = check_queries(queries), check_k(k)
        found = self.retriever.search(queries, k + len(self.ids))
        return [[hit for hit in hits if hit.passage.id not in self.ids][:k] for hits in found]

    def for_question(self, question: Question) -> Retriever:
        """The same for this question. Which gold passages go is drawn from its id; more withheld includes fewer."""
        ids = tuple(sorted(set(question.gold_ids), key=lambda gold: _drawn(question.id, gold)))
        return replace(self, retriever=self.retriever.for_question(question), ids=ids[: self.withheld])

    def identity(self) -> dict[str, str]:
        """How many are withheld, and the retriever's identity."""
        return {"retriever": "withholding", "withheld": str(self.withheld)} | self.inner_identity()


def _drawn(question: str, gold: str) -> bytes:
    return hashlib.blake2b(f"{question}\n{gold}".encode("utf-8", "backslashreplace"), digest_size=8).digest()
