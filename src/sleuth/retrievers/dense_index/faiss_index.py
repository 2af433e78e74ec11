"""Approximate search by faiss, and nothing of faiss beyond this file.

Vectors are grouped around centroids (an inverted file, IVF) and kept at one byte a dimension (SQ8) or
half a bit (PQ, fast scan); a query looks through the groups nearest to it. How many is chosen by
measuring, against exact search, how many of the best passages are found.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.vectors import Vectors, blocks, recall

if TYPE_CHECKING:
    import faiss

TRAINING = 32
"""Vectors per centroid to place it by."""
LARGEST_SAMPLE = 400_000
"""Vectors to train on: 1.2 GB at 768 dimensions."""
ADD = 65_536
"""Rows added at a time."""
ITERATIONS = 10
"""Of k-means; more of them change recall in the third digit."""
TARGET = 0.99
"""Share of the exact best 10 that a search should find."""
LARGEST_SHARE = 1 / 8
"""Of the lists: what still is not found is mostly far from its list's centre, and costs as much to find as exact search."""
FEW_LISTS = 64
"""So many may be looked through in any index."""

Search = Callable[[NDArray[np.float32], int], list[NDArray[np.int64]]]
"""(queries, nprobe) → rows found for each query."""


def faiss_module() -> Any:
    """faiss; RetrievalError that names the extra if it is missing."""
    try:
        import faiss
    except ImportError as error:
        raise RetrievalError(
            "an index of so many vectors needs faiss: pip install '.[faiss]' in the Sleuth checkout"
        ) from error
    return faiss


def faiss_version() -> str:
    """The installed faiss."""
    return f"faiss {faiss_module().__version__}"


def num_lists(count: int) -> int:
    """About 4 √N lists, a power of two, none with fewer than TRAINING vectors to train on."""
    wanted = 2 ** round(np.log2(max(1.0, 4 * count**0.5)))
    return int(max(1, min(wanted, count // TRAINING)))


def num_sampled(count: int) -> int:
    """Vectors by which the lists of so many are placed; fewer than 16 are taken several times, since 4 bits need 16."""
    return max(16, min(count, LARGEST_SAMPLE, max(num_lists(count) * TRAINING, 8192)))


def compressed(dimension: int) -> str:
    """The coding of vectors that only name candidates: four bits for every second to fourth dimension."""
    step = next(step for step in (4, 3, 2, 1) if dimension % step == 0)
    return f"PQ{dimension // step}x4fs"


def build(vectors: Vectors, coding: str, path: Path, progress: Callable[[int], None] | None = None) -> int:
    """Train on a sample, add all vectors and write the index; returns the number of lists.

    `coding` is "SQ8" or another of faiss's names for what follows "IVFn,". Rows are numbered from 0.
    Memory: the sample and the coded vectors. The same vectors give the same index.
    """
    library = faiss_module()
    count, dimension = vectors.shape
    lists = num_lists(count)
    index = library.index_factory(dimension, f"IVF{lists},{coding}", library.METRIC_INNER_PRODUCT)
    index.cp.niter = ITERATIONS
    index.cp.min_points_per_centroid = 1
    index.cp.max_points_per_centroid = TRAINING
    index.train(sample(vectors, num_sampled(count)))
    for start, block in blocks(vectors, ADD):
        index.add(block)
        if progress:
            progress(start + len(block))
    library.write_index(index, str(path))
    return lists


def sample(vectors: Vectors, size: int) -> NDArray[np.float32]:
    """`size` rows spread evenly over all of them, some of them repeated if there are fewer, as float32."""
    rows = np.linspace(0, len(vectors) - 1, size).astype(np.int64)
    return np.ascontiguousarray(vectors[rows], dtype=np.float32)


def load(path: Path, count: int, dimension: int, *, mapped: bool) -> faiss.IndexIVF:
    """An index written by `build`, whose content the caller has verified.

    mapped: lists stay in the file and are read as they are needed; the operating system keeps what
    is used, and every process shares it.
    """
    library = faiss_module()
    try:
        flags = library.IO_FLAG_MMAP | library.IO_FLAG_READ_ONLY if mapped else library.IO_FLAG_READ_ONLY
        index: faiss.IndexIVF = library.read_index(str(path), flags)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RetrievalError(f"{path}: faiss cannot read it ({reason}); build the index again") from error
    if (index.ntotal, index.d) != (count, dimension) or not hasattr(index, "nprobe"):
        raise RetrievalError(f"{path}: not the index that its manifest tells of; build it again")
    return index


def search(
    index: faiss.IndexIVF, queries: NDArray[np.float32], k: int, nprobe: int
) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """For each query the scores and rows of about the k best, fewer if the lists hold fewer."""
    library = faiss_module()
    settings = library.SearchParametersIVF(nprobe=min(nprobe, index.nlist))
    scores_Q_K, rows_Q_K = index.search(np.ascontiguousarray(queries), min(k, index.ntotal), params=settings)
    return [(scores[rows >= 0], rows[rows >= 0]) for scores, rows in zip(scores_Q_K, rows_Q_K, strict=True)]


def tune(
    find: Search, queries: NDArray[np.float32], truth: list[NDArray[np.int64]], lists: int
) -> tuple[int, float]:
    """(nprobe, recall): the fewest lists that find TARGET of the true rows, or LARGEST_SHARE of all lists."""
    reached = 0.0
    for nprobe in _steps(min(lists, max(FEW_LISTS, round(lists * LARGEST_SHARE)))):
        reached = recall(find(queries, nprobe), truth)
        if reached >= TARGET:
            break
    return nprobe, reached


def _steps(lists: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, … up to `lists`."""
    steps = {1, lists}
    step = 2
    while step < lists:
        steps |= {step, min(lists, step * 3 // 2)}
        step *= 2
    return sorted(steps)
