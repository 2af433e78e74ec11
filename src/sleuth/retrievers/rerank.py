"""Reranking: what another retriever found, put in order by a cross-encoder that reads query and passage together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sleuth.encoders.base import joined
from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.errors import ConfigError
from sleuth.retrievers.base import Around, Retriever, check_k, check_queries
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.analysis import valid
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class Rerank(Around):
    """The best k, by the cross-encoder, of the `depth` passages a retriever finds."""

    retriever: Retriever = field(default_factory=BM25)
    """Who finds the candidates."""
    model: CrossEncoder = field(default_factory=CrossEncoder)
    depth: int = 50
    """Candidates read for each query, 1 or more; at least as many as are wanted are always read."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ConfigError(f"rerank.depth must be at least 1, not {self.depth}")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k, ties by passage id, with the cross-encoder's scores; all queries' pairs are scored together."""
        k, queries = check_k(k), check_queries(queries)
        found = self.retriever.search(queries, max(k, self.depth))
        pairs = [
            (valid(query), joined(hit.passage))
            for query, hits in zip(queries, found, strict=True)
            for hit in hits
        ]
        scores = iter(self.model.score(pairs) if pairs else [])
        scored = [[Hit(hit.passage, next(scores)) for hit in hits] for hits in found]
        return [sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k] for hits in scored]

    def for_question(self, question: Question) -> Retriever:
        """The same over what the retriever uses for this question; itself if that is itself."""
        chosen = self.retriever.for_question(question)
        return self if chosen is self.retriever else replace(self, retriever=chosen)

    def identity(self) -> dict[str, str]:
        """Model and depth, and the retriever's identity."""
        own = {"retriever": "rerank", "model": self.model.model, "depth": str(self.depth)}
        return own | {"max_tokens": str(self.model.max_tokens)} | self.inner_identity()
