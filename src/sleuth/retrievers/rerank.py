"""Rerank: another retriever's passages in the order of a cross-encoder."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sleuth.checked import Checked, Positive
from sleuth.encoders.base import joined
from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.bm25 import BM25
from sleuth.text import valid_unicode
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class Rerank(Checked, Around):
    """The best k, by the cross-encoder, of the `depth` passages a retriever finds."""

    retriever: Retriever = field(default_factory=BM25)
    """Finds the candidates."""
    model: CrossEncoder = field(default_factory=CrossEncoder)
    depth: Positive = 50
    """Candidates scored per query; never fewer than k."""

    def open(self) -> None:
        super().open()
        self.model.open()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k with the cross-encoder's scores, ties by passage id. All queries share its batches."""
        k, queries = check_k(k), check_queries(queries)
        found = self.retriever.search(queries, max(k, self.depth))
        pairs = [
            (valid_unicode(query), joined(hit.passage))
            for query, hits in zip(queries, found, strict=True)
            for hit in hits
        ]
        scores = iter(self.model.score(pairs) if pairs else [])
        scored = [[Hit(hit.passage, next(scores)) for hit in hits] for hits in found]
        return [sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k] for hits in scored]

    def for_question(self, question: Question) -> Retriever:
        chosen = self.retriever.for_question(question)
        return self if chosen is self.retriever else replace(self, retriever=chosen)

    def identity(self) -> dict[str, str]:
        own = {"retriever": "rerank", "model": self.model.model, "depth": str(self.depth)}
        return own | {"max_tokens": str(self.model.max_tokens)} | self.inner_identity()
