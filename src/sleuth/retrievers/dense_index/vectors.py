"""Vectors in a file as they are, row after row, and the exact search through them.

No header: number of rows, dimension and precision are the manifest's, so that nothing in the file
can be anything but numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError

VECTORS = "vectors.f32"
HALF_VECTORS = "vectors.f16"

ROWS = 8192
"""Rows multiplied at a time: a block stays in the processor's cache, and half precision is widened blockwise."""
QUERIES = 32
"""Queries multiplied at a time; scores for all rows take 4 bytes each."""
DIGITS = 5
"""Scores that agree to so many digits of the best one, or of their own if they are larger, are a tie: single precision, whose last bits
depend on what was computed beside a vector."""

Vectors = NDArray[np.float32] | NDArray[np.float16]
Found = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Scores and rows of one query, in no order, the best k and what ties with the last of them."""


class VectorFile:
    """A file of rows that grows; what a killed process wrote of it is taken up again."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._dimension = dimension
        self._dtype = _precision(path)
        self._file = path.open("ab")

    def resume(self, step: int) -> int:
        """Cut the file to the whole steps of `step` rows that are surely on disk; returns how many rows remain.

        The last step is dropped: after a power cut its bytes may be there in number only.
        """
        row = self._dimension * self._dtype.itemsize
        steps = max(0, self._file.seek(0, os.SEEK_END) // (row * step) - 1)
        self._file.truncate(steps * step * row)
        return steps * step

    def add(self, rows: NDArray[np.float32]) -> None:
        """Append rows [n, D] and write them through to the disk."""
        if rows.ndim != 2 or rows.shape[1] != self._dimension:
            raise RetrievalError(f"vectors of shape {rows.shape} for an index of dimension {self._dimension}")
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_vectors(path: Path, count: int, dimension: int) -> Vectors:
    """The rows of a file [count, D], mapped. RetrievalError if it holds another number of bytes."""
    dtype = _precision(path)
    try:
        if path.stat().st_size != count * dimension * dtype.itemsize:
            raise RetrievalError(f"{path}: damaged, not {count} rows of {dimension}; build the index again")
        return np.memmap(path, dtype=dtype, mode="r", shape=(count, dimension))
    except (OSError, ValueError) as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error


def _precision(path: Path) -> np.dtype[np.float32] | np.dtype[np.float16]:
    return np.dtype("<f2") if path.suffix == ".f16" else np.dtype("<f4")


def blocks(vectors: Vectors, rows: int = ROWS) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """(First row, rows as float32) all through the vectors."""
    for start in range(0, len(vectors), rows):
        yield start, np.asarray(vectors[start : start + rows], dtype=np.float32)


def search_exact(vectors: Vectors, queries: NDArray[np.float32], k: int) -> list[Found]:
    """For each query [Q, D] the rows of the k largest inner products, and all that tie with the last."""
    found: list[Found] = []
    for first in range(0, len(queries), QUERIES):
        some = queries[first : first + QUERIES]
        scores_Q_N = np.empty((len(some), len(vectors)), dtype=np.float32)
        for start, block in blocks(vectors, ROWS):
            np.matmul(some, block.T, out=scores_Q_N[:, start : start + len(block)])
        found += [best(scores, k) for scores in scores_Q_N]
    return found


def best(scores: NDArray[np.float32], k: int) -> Found:
    """The k best of one query's scores for all rows, with what may tie with the last."""
    if k >= len(scores):
        return scores, np.arange(len(scores))
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    # A whole unit of the last digit below: what rounds to the same score is at most that far away.
    unit = 10.0 ** -decimals(max(abs(float(scores.max())), abs(float(last))))
    rows = np.flatnonzero(scores >= last - unit)
    return scores[rows], rows


def decimals(size: float) -> int:
    """Decimal places that make DIGITS digits of a score of that size, sign aside."""
    return DIGITS if size < 1e-30 else DIGITS - 1 - math.floor(math.log10(size))


def rounded(scores: NDArray[np.float32]) -> list[float]:
    """Scores of one query as they are shown and compared, which what else was found must not change.

    The best score, which is always among them, says to how many places. A negative one that is larger,
    sign aside, has fewer: its last bits mean as little.
    """
    if not len(scores):
        return []
    size = abs(float(scores.max()))
    places = decimals(size)
    return [round(score, places if abs(score) <= size else decimals(abs(score))) for score in scores.tolist()]


def recall(found: Sequence[NDArray[np.int64]], truth: Sequence[NDArray[np.int64]]) -> float:
    """Mean share of the true rows of each query that were found."""
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, truth, strict=True)]))
