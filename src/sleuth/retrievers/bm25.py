"""BM25 over an index on disk, built by sleuth.retrievers.bm25_index.build. Every query is plain words."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from sleuth.checked import Checked, NonNegativeFloat
from sleuth.errors import RetrievalError
from sleuth.retrievers.base import OnDisk, check_k, check_queries
from sleuth.retrievers.bm25_index.engine import ENGINE, ENGINE_VERSION, K1, B
from sleuth.retrievers.bm25_index.index import OpenIndex
from sleuth.retrievers.bm25_index.writer import num_cores
from sleuth.types import Hit

SHARE = 16
"""Queries a thread searches at a time. A smaller batch uses one thread, since starting more costs too much."""


@dataclass(frozen=True)
class BM25(Checked, OnDisk):
    """Okapi BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75.

    The index opens at the first search and stays as it was then, even if a new one is built.
    Two BM25 are equal if their settings are.
    """

    title_boost: NonNegativeFloat = 0.3
    """Weight of the title's own score, added to the score of title and text together."""

    def open(self) -> None:
        """Open the index. RetrievalError if it is missing, damaged or of another version."""
        _ = self._index

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        k, queries = check_k(k), check_queries(queries)
        shares = [queries[i : i + SHARE] for i in range(0, len(queries), SHARE)]
        find = partial(self._index.find, k=k, title_boost=self.title_boost)
        if len(shares) == 1 or (num_threads := num_cores()) == 1:
            found = [find(some) for some in shares]
        else:
            with ThreadPoolExecutor(num_threads) as pool:
                found = list(pool.map(find, shares))
        return [hits for some in found for hits in some]

    def identity(self) -> dict[str, str]:
        manifest = self._index.manifest
        return {
            "retriever": "bm25",
            "engine": ENGINE,
            "engine_version": ENGINE_VERSION,
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
            raise RetrievalError("no index given: pass --index DIR, or build one: sleuth index SRC -o DIR")
        return OpenIndex(Path(self.path))


def open_index(path: str | Path) -> BM25:
    """BM25 over the index at `path`, opened; see BM25.open."""
    retriever = BM25(str(path))
    retriever.open()
    return retriever
