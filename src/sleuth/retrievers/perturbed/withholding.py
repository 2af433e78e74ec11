"""Withholding: a retriever that never finds some gold passages, to measure answers without evidence.

The gold answer stays the same, and another passage may still contain it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sleuth.checked import Checked, NonNegative
from sleuth.gold import gold_id_of
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.given import GivenParagraphs
from sleuth.text import digest
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class Withholding(Checked, Around):
    """The retriever's best k passages that are not withheld."""

    retriever: Retriever = field(default_factory=GivenParagraphs)
    """Finds the passages."""
    withheld: NonNegative = 1
    """Gold passages of each question that are never found; at most all of them."""
    question: Question | None = None
    """The question, set by `for_question`."""
    ids: tuple[str, ...] = ()
    """Ids of its gold passages that are withheld, set by `for_question`."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        queries, k = check_queries(queries), check_k(k)
        found = self.retriever.search(queries, k + len(self.ids))
        return [[hit for hit in hits if not self._is_withheld(hit)][:k] for hits in found]

    def for_question(self, question: Question) -> Retriever:
        """The same for this question. Its id decides which gold passages go; a higher count includes a lower one."""
        ids = tuple(sorted(set(question.gold_ids), key=lambda gold: digest(f"{question.id}\n{gold}")))
        inner = self.retriever.for_question(question)
        return replace(self, retriever=inner, question=question, ids=ids[: self.withheld])

    def _is_withheld(self, hit: Hit) -> bool:
        return self.question is not None and gold_id_of(self.question, hit.passage) in self.ids

    def identity(self) -> dict[str, str]:
        return {"retriever": "withholding", "withheld": str(self.withheld)} | self.inner_identity()
