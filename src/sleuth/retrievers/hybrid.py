"""Words and vectors of one index together: reciprocal rank fusion of BM25 and dense retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sleuth.checked import Checked, Positive
from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.base import OnDisk
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.types import Hit


@dataclass(frozen=True)
class Hybrid(Checked, OnDisk):
    """Fusion of BM25 and Dense over one index directory, which must hold words and vectors of the same passages."""

    path: str = ""
    """Index directory built with --dense; "" = not set yet."""
    encoder: Encoder | None = None
    """None = the one the index names."""
    k: Positive = 60
    """Constant of the fusion's formula."""
    depth: Positive = 100
    """Passages fetched from each; never fewer than k."""

    @classmethod
    def open(cls, path: str | Path) -> Hybrid:
        """The index at `path`, opened now, without its encoder; RetrievalError if a part is missing or damaged."""
        retriever = cls(path=str(path))
        _ = retriever._fusion
        return retriever

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k passages of both rankings together; see Fusion."""
        return self._fusion.search(queries, k)

    def identity(self) -> dict[str, str]:
        """That of the fusion, whose parts are 0 (words) and 1 (vectors)."""
        return self._fusion.identity() | {"retriever": "hybrid"}

    @cached_property
    def _fusion(self) -> Fusion:
        words, vectors = BM25(self.path), Dense(self.path, self.encoder)
        if words.identity()["index"] != vectors.identity()["index"]:
            raise RetrievalError(
                f"index {self.path!r}: its vectors are of other passages than its words; "
                "build it again with 'sleuth index SRC -o DIR --dense ENCODER'"
            )
        return Fusion((words, vectors), self.k, self.depth)
