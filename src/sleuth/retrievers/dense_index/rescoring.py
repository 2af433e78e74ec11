"""Scores at one byte a dimension, computed for a few candidates only (SQ8, out of a mapped file).

For collections whose vectors do not fit in memory: a coarse index in memory names candidates, and
only their rows are read from disk.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.vectors import Vectors, blocks

CODES = "vectors.sq8"
RANGES = "vectors.ranges"
"""Lowest value and width of a step for each dimension, [2, D] float32."""
LEVELS = 255


def write_codes(vectors: Vectors, folder: Path) -> None:
    """Write CODES and RANGES: each dimension's range, over all vectors, in 255 even steps."""
    dimension = vectors.shape[1]
    low = np.full(dimension, np.inf, dtype=np.float32)
    high = np.full(dimension, -np.inf, dtype=np.float32)
    for _, block in blocks(vectors):
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
    width = ((high - low) / LEVELS).astype(np.float32)
    # A dimension that never changes (or by less than can be divided by) has code 0 and value `low`.
    width = np.where(width >= np.finfo(np.float32).tiny, width, np.float32(1))
    (folder / RANGES).write_bytes(np.stack([low, width]).astype("<f4").tobytes())
    with (folder / CODES).open("xb") as file:
        for _, block in blocks(vectors):
            file.write(np.rint((block - low) / width).clip(0, LEVELS).astype(np.uint8).tobytes())


class Codes:
    """The rows of an index, one byte a dimension, mapped."""

    def __init__(self, folder: Path, count: int, dimension: int) -> None:
        try:
            self._codes_N_D = np.memmap(folder / CODES, dtype=np.uint8, mode="r", shape=(count, dimension))
            ranges = np.frombuffer((folder / RANGES).read_bytes(), dtype="<f4").reshape(2, dimension)
        except (OSError, ValueError) as error:
            raise RetrievalError(f"{folder}: damaged ({error}); build the index again") from error
        self._low_D, self._width_D = ranges.astype(np.float32)

    def score(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Inner products of one query [D] with the rows, as decoded."""
        # q·(low + width·c) = q·low + (q·width)·c, so that codes need not be decoded one by one.
        codes = self._codes_N_D[np.sort(rows)].astype(np.float32)
        scores = codes @ (query * self._width_D) + query @ self._low_D
        return np.asarray(scores, dtype=np.float32)[np.argsort(np.argsort(rows))]
