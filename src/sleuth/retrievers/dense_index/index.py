"""OpenDense: the vectors of an index directory, ready to search."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.dense_index.faiss_index import FaissIndex
from sleuth.retrievers.dense_index.manifest import (
    APPROXIMATE,
    EXACT,
    ROWS,
    DenseManifest,
    read_dense_manifest,
)
from sleuth.retrievers.dense_index.vectors import ExactVectors, load, rounded
from sleuth.retrievers.index_files.manifest import check_file, check_files
from sleuth.retrievers.index_files.publish import DENSE
from sleuth.types import Hit

TIE_ROOM = 32
"""Passages beyond the k-th that an approximate index returns, so that ties at the end are broken by id."""


class OpenDense:
    """Vectors and the passages they were made from. Threads may share it; it never changes."""

    def __init__(self, index: Path, *, thorough: bool = False) -> None:
        """Open the index directory `index`; thorough: compare the hash of every file.

        Raises RetrievalError if it is missing or damaged, or its vectors are of other passages than its words.
        """
        self.manifest = read_dense_manifest(index)
        while True:
            try:
                self._open(index, thorough)
                return
            except RetrievalError:
                # Another process may have replaced the vectors since the manifest was read.
                if (newer := read_dense_manifest(index)) == self.manifest:
                    raise
                self.manifest = newer

    def _open(self, index: Path, thorough: bool) -> None:
        self._passages = Passages(index)
        if self._passages.manifest.sha256 != self.manifest.sha256:
            why = "its vectors are of other passages than its words"
            raise RetrievalError(f"index {str(index)!r}: {why}; build them again with 'sleuth index --dense'")
        folder = check_files(index / DENSE, self.manifest, thorough=thorough)
        if self.manifest.backend != "exact":
            check_file(index / DENSE, self.manifest, APPROXIMATE)  # a forged file can overwrite memory
        self._rows, self._vectors = open_vectors(folder, self.manifest)

    def find(self, queries: NDArray[np.float32], k: int, nprobe: int = 0) -> list[list[Hit]]:
        """The best k passages for each query vector [Q, D], ties by id; nprobe 0 = as the build chose."""
        if queries.shape[1:] != (self.manifest.dimension,):
            size = self.manifest.dimension
            raise RetrievalError(f"queries of dimension {queries.shape[-1]} for vectors of {size}")
        k = min(k, self.manifest.num_passages)
        found = self._vectors.search(queries, k + TIE_ROOM, nprobe or self.manifest.nprobe)
        best = [_best(rounded(scores), self._rows[places], k) for scores, places in found]
        passages = self._passages.by_row(list({row for ranked in best for _, row in ranked}))
        hits = [[Hit(passages[row], score) for score, row in ranked] for ranked in best]
        return [sorted(some, key=lambda hit: (-hit.score, hit.passage.id))[:k] for some in hits]


def open_vectors(
    folder: Path, manifest: DenseManifest
) -> tuple[NDArray[np.int64], ExactVectors | FaissIndex]:
    """The rows and vectors in a generation's folder."""
    size = (manifest.num_passages, manifest.dimension)
    is_exact = manifest.backend == "exact"
    vectors = ExactVectors(folder / EXACT, *size) if is_exact else FaissIndex(folder / APPROXIMATE, *size)
    return load(folder / ROWS), vectors


def _best(scores: NDArray[np.float64], rows: NDArray[np.int64], k: int) -> list[tuple[float, int]]:
    """(score, row) of the k best and of all that tie with the last."""
    kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
    return list(zip(scores[kept].tolist(), rows[kept].tolist(), strict=True))
