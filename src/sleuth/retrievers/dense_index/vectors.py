"""Vectors in .npy files, and exact search through them with numpy."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError
from sleuth.storage import whole_file

DIGITS = 5
"""Digits of the best score to which scores are compared; the last bits of single precision are noise."""
ROWS = 8192  # Vectors multiplied at a time, so that a block stays in the processor's cache.
QUERIES = 32  # Queries multiplied at a time; their scores for all vectors take 4 bytes each.

Found = tuple[NDArray[np.float32], NDArray[np.int64]]  # Scores and places of one query's best vectors.


def save(path: Path, values: NDArray[Any]) -> None:
    """Write a .npy file; if it exists it is complete, even after a power cut."""
    with whole_file(path) as file:
        np.save(file, values, allow_pickle=False)


def load(path: Path) -> NDArray[Any]:
    """A .npy file as a mapped array; RetrievalError if it cannot be read."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise RetrievalError(f"{path}: damaged ({error}); build the vectors again") from error
    return array


def blocks(files: Iterable[Path]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """(place of the first vector, vectors as float32) of each file in order."""
    start = 0
    for path in files:
        block = np.asarray(load(path), dtype=np.float32)
        yield start, block
        start += len(block)


class ExactVectors:
    """All vectors of an index as float32, mapped. Threads may share it."""

    def __init__(self, path: Path, count: int, dimension: int) -> None:
        """RetrievalError if the file does not hold `count` vectors of this dimension."""
        self._vectors = load(path)
        if self._vectors.shape != (count, dimension):
            raise RetrievalError(f"{path}: damaged, not {count} rows of {dimension}; build the vectors again")

    def search(self, queries: NDArray[np.float32], k: int, nprobe: int = 0) -> list[Found]:
        """For each query [Q, D] the k largest inner products and all that tie with the last; nprobe is ignored."""
        starts, count = range(0, len(self._vectors), ROWS), len(self._vectors)
        found: list[Found] = []
        for first in range(0, len(queries), QUERIES):
            some = queries[first : first + QUERIES]
            scores_Q_N = np.empty((len(some), count), dtype=np.float32)
            for start in starts:
                block = self._vectors[start : start + ROWS]
                np.matmul(some, block.T, out=scores_Q_N[:, start : start + len(block)])
            found += [_best(scores, k) for scores in scores_Q_N]
        return found

    def decoded(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at these places, [N, D]."""
        return np.asarray(self._vectors[places], dtype=np.float32)


def _best(scores: NDArray[np.float32], k: int) -> Found:
    if k >= len(scores):
        return scores, np.arange(len(scores))
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    # Scores that round to the same value differ by at most one unit of the last digit.
    places = np.flatnonzero(scores >= last - 10.0 ** -_decimals(scores))
    return scores[places], places


def rounded(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """One query's scores to DIGITS digits of the best one, which must be among them."""
    return scores.astype(np.float64).round(_decimals(scores))


def _decimals(scores: NDArray[np.float32]) -> int:
    """Decimal places that make DIGITS digits of the best score."""
    size = abs(float(scores.max()))
    return DIGITS if size < 1e-30 else DIGITS - 1 - math.floor(math.log10(size))
