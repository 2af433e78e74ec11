"""Noisy: irrelevant passages after the ones found, to measure robustness to noise (EviOmni, §4.5).

A query gets the same noise in every run. The noise comes last, so that a prompt without room loses it first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sleuth.checked import Checked, NonNegative
from sleuth.errors import RetrievalError
from sleuth.gold import gold_id_of
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.given import GivenParagraphs
from sleuth.text import contains, digest
from sleuth.types import Hit, Passage, Question

_TRIES = 100  # Draws per wanted passage before the pool counts as too small.


@dataclass(frozen=True)
class Noisy(Checked, Around):
    """Another retriever's k passages, then `noise` irrelevant ones."""

    retriever: Retriever = field(default_factory=GivenParagraphs)
    """Finds the relevant ones."""
    noise: NonNegative = 0
    """Irrelevant passages added to each result."""
    pool: str = ""
    """Index folder to draw them from; required if noise > 0."""
    question: Question | None = None
    """The question, set by `for_question`: its gold passages and those with an answer are not noise."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The retriever's k passages, then `noise` with score 0. RetrievalError if the pool is too small."""
        queries = check_queries(queries)
        found = self.retriever.search(queries, check_k(k))
        return [hits + self._draw(query, hits) for query, hits in zip(queries, found, strict=True)]

    def for_question(self, question: Question) -> Retriever:
        noisy = replace(self, retriever=self.retriever.for_question(question), question=question)
        if self.noise:
            noisy.__dict__["_pool"] = self._pool  # opened once, not for every question
        return noisy

    def identity(self) -> dict[str, str]:
        pool = self._pool.manifest.sha256 if self.noise and self.pool else ""
        return {"retriever": "noisy", "noise": str(self.noise), "pool": pool} | self.inner_identity()

    def _draw(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        taken = {hit.passage.id for hit in hits}
        drawn: list[Hit] = []
        for number in range(_TRIES * self.noise):
            if len(drawn) == self.noise:
                break
            row = int.from_bytes(digest(f"{number}\n{query}"), "big") % self._pool.manifest.num_rows
            passage = self._pool.by_row([row]).get(row)  # None if it was deleted
            if passage and passage.id not in taken and not self._is_relevant(passage):
                taken.add(passage.id)
                drawn.append(Hit(passage, 0.0))
        if len(drawn) < self.noise:
            raise RetrievalError(f"{self.pool}: holds too few passages for {self.noise} irrelevant ones")
        return drawn

    def _is_relevant(self, passage: Passage) -> bool:
        if self.question is None:
            return False
        text = f"{passage.title} {passage.text}"
        is_gold = gold_id_of(self.question, passage) is not None
        return is_gold or any(contains(text, a) for a in self.question.answers)

    @cached_property
    def _pool(self) -> Passages:
        if not self.pool:
            raise RetrievalError("noise needs a pool: set retriever.pool to an index folder")
        return Passages(self.pool)
