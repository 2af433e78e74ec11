"""One index of vectors on disk, open for search: whichever way its vectors are kept, rows and scores come out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index import faiss_index, rescoring
from sleuth.retrievers.dense_index.manifest import DenseManifest, dense_folder, read_dense_manifest, verified
from sleuth.retrievers.dense_index.passage_files.manifest import READ_WHOLE, check_files
from sleuth.retrievers.dense_index.passage_files.passages import BLOCKS, DELETED, PARTS, PassageReader
from sleuth.retrievers.dense_index.vectors import VECTORS, Found, open_vectors, rounded, search_exact
from sleuth.types import Hit

if TYPE_CHECKING:
    import faiss

COARSE = "vectors.faiss"
_SMALL = (PARTS, BLOCKS, DELETED, rescoring.RANGES)
"""Files that say what the others are: read at every opening, so their hash can be checked there."""
TIE_ROOM = 32
"""Passages asked of an approximate index beyond the k-th, so that most ties at the end are settled by id."""
_MORE_LISTS = 4
"""Times as many lists are looked through where those looked through hold too few passages."""


class Searcher(Protocol):
    """Rows and scores for queries, by one backend."""

    def __call__(self, queries: NDArray[np.float32], k: int, nprobe: int) -> list[Found]: ...


def exact_searcher(folder: Path, manifest: DenseManifest) -> Searcher:
    """Every vector is looked at; nprobe has no meaning."""
    vectors = open_vectors(folder / VECTORS, manifest.num_passages, manifest.dimension)
    return lambda queries, k, nprobe: search_exact(vectors, queries, k)


def ivf_searcher(folder: Path, manifest: DenseManifest) -> Searcher:
    """IVF-SQ8, mapped."""
    path = verified(folder, manifest, COARSE)
    index = faiss_index.load(path, manifest.num_passages, manifest.dimension, mapped=True)
    return lambda queries, k, nprobe: _widened(index, queries, k + TIE_ROOM, k, nprobe)


def rescored_searcher(folder: Path, manifest: DenseManifest) -> Searcher:
    """Candidates from compressed vectors in memory, scored again at one byte a dimension from disk."""
    path = verified(folder, manifest, COARSE)
    index = faiss_index.load(path, manifest.num_passages, manifest.dimension, mapped=False)
    codes = rescoring.Codes(folder, manifest.num_passages, manifest.dimension)
    return rescored(index, codes, manifest.candidates)


def rescored(index: faiss.IndexIVF, codes: rescoring.Codes, candidates: int) -> Searcher:
    """`candidates` of `index`, at least four for each passage wanted, with the scores of `codes`.

    Where there are no more passages than that all are scored. `index` names none for a query by whose
    compressed scores all passages are equal: then the first rows are the candidates.
    """

    def find(queries: NDArray[np.float32], k: int, nprobe: int) -> list[Found]:
        count = min(max(candidates, 4 * k), index.ntotal)
        first = np.arange(count)
        if index.ntotal <= candidates:
            named = [first] * len(queries)
        else:
            found = _widened(index, queries, count, k, nprobe)
            named = [rows if len(rows) >= k else np.union1d(rows, first) for _, rows in found]
        return [(codes.score(query, rows), rows) for query, rows in zip(queries, named, strict=True)]

    return find


def _widened(
    index: faiss.IndexIVF, queries: NDArray[np.float32], count: int, wanted: int, nprobe: int
) -> list[Found]:
    """`count` rows for each query by faiss_index.search, out of more lists where `nprobe` hold fewer than are wanted."""
    found = faiss_index.search(index, queries, count, nprobe)
    while nprobe < index.nlist:
        short = [number for number, (_, rows) in enumerate(found) if len(rows) < wanted]
        if not short:
            break
        nprobe *= _MORE_LISTS
        for number, more in zip(short, faiss_index.search(index, queries[short], count, nprobe), strict=True):
            found[number] = more
    return found


SEARCHERS = {"exact": exact_searcher, "ivf-sq8": ivf_searcher, "pq-sq8": rescored_searcher}


class OpenDense:
    """An index of vectors ready to search. Threads may share it; what it holds never changes."""

    def __init__(self, directory: Path) -> None:
        folder = dense_folder(directory)
        self.manifest = read_dense_manifest(folder)
        while True:
            try:
                self._open(folder)
                return
            except RetrievalError:
                # A build may have replaced the index, and removed the files, since the manifest was read.
                if (newer := read_dense_manifest(folder)) == self.manifest:
                    raise
                self.manifest = newer

    def _open(self, folder: Path) -> None:
        generation = folder / self.manifest.generation
        check_files(generation, self.manifest)
        is_read_whole = sum(self.manifest.files.values()) <= READ_WHOLE
        for name in self.manifest.files:
            # No searcher takes the file of faiss unread, whatever its size.
            if name in _SMALL or (is_read_whole and name != COARSE):
                verified(generation, self.manifest, name)
        self._passages = PassageReader(generation, self.manifest.num_passages)
        self._search = SEARCHERS[self.manifest.backend](generation, self.manifest)

    def find(self, queries: NDArray[np.float32], k: int, nprobe: int = 0) -> list[list[Hit]]:
        """The best k passages for each query vector [Q, D], best first, ties by passage id.

        nprobe: lists looked through; 0 = what the build chose.
        """
        if queries.shape[1:] != (self.manifest.dimension,):
            raise RetrievalError(
                f"queries of dimension {queries.shape[-1]} for vectors of {self.manifest.dimension}"
            )
        k = min(k, self.manifest.num_passages)
        found = self._search(queries, k, nprobe or self.manifest.nprobe)
        return [self._ranked(scores, rows, k) for scores, rows in found]

    def _ranked(
        self, scores: NDArray[np.float32], rows: Sequence[int] | NDArray[np.int64], k: int
    ) -> list[Hit]:
        keyed = zip(rounded(scores), (int(row) for row in rows), strict=True)
        ranked = sorted((-score, self._passages.id(row), row) for score, row in keyed)
        return [Hit(self._passages[row], -negative) for negative, _, row in ranked[:k]]
