"""Fusion: several rankings merged by reciprocal rank (Cormack, Clarke and Büttcher 2009), without their scores."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Self

from sleuth.checked import Checked, Positive
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.base import Retriever, check_k, check_queries
from sleuth.text import normalise
from sleuth.types import Hit, Passage, Question


@dataclass(frozen=True)
class Fusion(Checked, Retriever):
    """A passage scores Σ 1/(k + rank) over the retrievers that found it, rank counted from 1."""

    retrievers: tuple[Retriever, ...] = ()
    """Two or more."""
    k: Positive = 60
    """Constant of the formula; the larger, the less the first ranks count."""
    depth: Positive = 100
    """Passages fetched from each retriever; never fewer than k."""

    def cross_check(self) -> None:
        if len(self.retrievers) < 2:
            raise ConfigError(f"fusion needs two retrievers or more, not {len(self.retrievers)}")

    def open(self) -> None:
        for retriever in self.retrievers:
            retriever.open()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k passages of the fused rankings, best first, ties by id."""
        k, queries = check_k(k), check_queries(queries)
        depth = max(k, self.depth)
        rankings = [retriever.search(queries, depth) for retriever in self.retrievers]
        return [self._fuse(lists)[:k] for lists in zip(*rankings, strict=True)]

    def for_question(self, question: Question) -> Retriever:
        chosen = tuple(retriever.for_question(question) for retriever in self.retrievers)
        unchanged = all(a is b for a, b in zip(chosen, self.retrievers, strict=True))
        return self if unchanged else replace(self, retrievers=chosen)

    @property
    def unplaced(self) -> bool:
        return any(retriever.unplaced for retriever in self.retrievers)

    def at(self, path: str) -> Self:
        return replace(self, retrievers=tuple(retriever.at(path) for retriever in self.retrievers))

    def identity(self) -> dict[str, str]:
        own = {"retriever": "fusion", "k": str(self.k), "depth": str(self.depth)}
        for number, retriever in enumerate(self.retrievers):
            own |= {f"{number}.{key}": value for key, value in retriever.identity().items()}
        return own

    def _fuse(self, rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
        shares: dict[str, list[float]] = defaultdict(list)
        passages: dict[str, Passage] = {}
        for ranking in rankings:
            for rank, hit in enumerate(ranking, start=1):
                first = passages.setdefault(hit.passage.id, hit.passage)
                if first.text != hit.passage.text and normalise(first.text) != normalise(hit.passage.text):
                    raise RetrievalError(
                        f"the fused indexes have different passages with the id {first.id!r}: give each its own ids"
                    )
                shares[hit.passage.id].append(1 / (self.k + rank))
        # fsum is exact, so equal sets of ranks tie whatever retrievers they come from.
        hits = [Hit(passages[key], fsum(some)) for key, some in shares.items()]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))
