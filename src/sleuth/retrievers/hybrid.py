"""Hybrid: BM25 and dense retrieval over one index, merged by reciprocal rank fusion."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sleuth.checked import Checked, Positive
from sleuth.encoders.base import Encoder
from sleuth.retrievers.base import OnDisk
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.types import Hit


@dataclass(frozen=True)
class Hybrid(Checked, OnDisk):
    """Fusion of BM25 and Dense over one index directory with words and vectors."""

    encoder: Encoder | None = None
    """None = the encoder that the index names."""
    k: Positive = 60
    """Constant of the fusion's formula."""
    depth: Positive = 100
    """Passages fetched from each; never fewer than k."""

    def open(self) -> None:
        self._fusion.open()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return self._fusion.search(queries, k)

    def identity(self) -> dict[str, str]:
        return self._fusion.identity() | {"retriever": "hybrid"}

    @cached_property
    def _fusion(self) -> Fusion:
        return Fusion((BM25(self.path), Dense(self.path, self.encoder)), self.k, self.depth)
