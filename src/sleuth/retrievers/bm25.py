"""BM25 over an index on disk, made by sleuth.retrievers.bm25_index.build. Every query is plain words."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.base import OnDisk, check_k, check_queries
from sleuth.retrievers.bm25_index.engine import ENGINE, K1, B, engine_version
from sleuth.retrievers.bm25_index.index import OpenIndex
from sleuth.types import Hit

SHARE = 16
"""Queries a thread takes at a time; smaller batches are not shared, since starting threads costs more."""


@dataclass(frozen=True)
class BM25(OnDisk):
    """Okapi BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75.

    The index opens at the first search and stays as it was then, even if a new one is built.
    Two BM25 are equal if their settings are.
    """

    path: str = ""
    """Index directory; "" = not set yet."""
    title_boost: float = 0.3
    """Weight (0 or more) of the title's own score, added to that of title and text together."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.title_boost) and self.title_boost >= 0):
            raise ConfigError(f"bm25.title_boost must be 0 or more, not {self.title_boost}")

    def open(self) -> None:
        """Open the index. RetrievalError if it is missing, damaged or of another version."""
        _ = self._index

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k passages for each query; a large batch uses all cores."""
        k, queries = check_k(k), check_queries(queries)
        index = self._index

        shares = [queries[i : i + SHARE] for i in range(0, len(queries), SHARE)]

        def find(some: Sequence[str]) -> list[list[Hit]]:
            return index.find(some, k, self.title_boost)

        if len(shares) == 1 or (num_threads := _num_cores()) == 1:
            found = [find(some) for some in shares]
        else:
            with ThreadPoolExecutor(num_threads) as pool:
                found = list(pool.map(find, shares))
        return [hits for some in found for hits in some]

    def identity(self) -> dict[str, str]:
        """Engine, version, parameters and the hash of the passages."""
        manifest = self._index.manifest
        return {
            "retriever": "bm25",
            "engine": ENGINE,
            "engine_version": engine_version(),
            "analyser": f"{manifest.analyser}/{manifest.analyser_fingerprint}",
            "k1": str(K1),
            "b": str(B),
            "title_boost": str(self.title_boost),
            "num_passages": str(manifest.num_passages),
            "index": manifest.sha256,
        }

    @cached_property
    def _index(self) -> OpenIndex:
        if not self.path:
            raise RetrievalError(
                "no index given: pass --index DIR, or build one with 'sleuth index SRC -o DIR'"
            )
        return OpenIndex(Path(self.path))


def open_index(path: str | Path) -> BM25:
    """BM25 over the index at `path`, opened; see BM25.open."""
    retriever = BM25(str(path))
    retriever.open()
    return retriever


def _num_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
