"""Approximate search by faiss: inverted lists of compressed vectors, as composed by its index_factory.

The number of lists probed is tuned against exact search.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.loading import first_line
from sleuth.errors import RetrievalError
from sleuth.registry import needed
from sleuth.retrievers.dense_index.manifest import Backend, DenseManifest
from sleuth.retrievers.dense_index.vectors import Found, blocks

CANDIDATES = 800  # Smallest number of candidates that are re-scored for a query.
TRAINING = 32  # Vectors per list for k-means.
LARGEST_SAMPLE = 400_000  # Most vectors to train on: 1.2 GB at 768 dimensions.
ITERATIONS = 10  # Iterations of k-means; more change recall in the third digit.
MARGIN = 0.1  # Room beyond each end of a dimension's range in the sample, for vectors that are added later.
TARGET = 0.99  # Recall@10 at which tuning stops.
FEW_LISTS = 64
"""Lists that tuning may choose in any index; in a large one, at most an eighth: more cost as much as exact search."""


def faiss_module() -> Any:
    """faiss; RetrievalError if it is missing."""
    return needed("faiss", "faiss", RetrievalError)


def num_lists(count: int) -> int:
    """About 4 √N lists, a power of two, none with fewer than TRAINING vectors to train on."""
    wanted = 2 ** round(np.log2(max(1.0, 4 * count**0.5)))
    return int(max(1, min(wanted, count // TRAINING)))


def num_sampled(count: int) -> int:
    """Vectors to train on; at least 16, which codes of 4 bits need."""
    return max(16, min(count, LARGEST_SAMPLE, max(num_lists(count) * TRAINING, 8192)))


def factory(backend: Backend, count: int, dimension: int) -> str:
    """Argument of faiss's index_factory; PQ has 4 bits for every two to four dimensions."""
    coding = "SQ8"
    if backend == "pq-sq8":
        step = next(step for step in (4, 3, 2, 1) if dimension % step == 0)
        coding = f"PQ{dimension // step}x4fs,Refine(SQ8)"
    return f"IVF{num_lists(count)},{coding}"


def build(files: Sequence[Path], manifest: DenseManifest, path: Path, trained: Path | None = None) -> None:
    """Write an index of the vectors in `files`, numbered from 0. Equal vectors give an equal index.

    trained: an index by the same encoder whose centroids and codes are used again; vectors that were decoded
    from it then keep their codes. Memory: the sample, and up to twice the index.
    """
    library = faiss_module()
    count, dimension = manifest.num_passages, manifest.dimension
    if trained:
        index = library.read_index(str(trained))
        index.reset()
    else:
        kind = factory(manifest.backend, count, dimension)
        index = library.index_factory(dimension, kind, library.METRIC_INNER_PRODUCT)
        settings = library.extract_index_ivf(index).cp
        settings.niter, settings.min_points_per_centroid = ITERATIONS, 1
        settings.max_points_per_centroid = TRAINING
        codes = library.downcast_index(getattr(index, "refine_index", index))
        codes.sq.rangestat_arg = MARGIN
        index.train(_sample(files, count, num_sampled(count)))
    for _, block in blocks(files):
        index.add(block)
    library.write_index(index, str(path))


def _sample(files: Sequence[Path], count: int, size: int) -> NDArray[np.float32]:
    """`size` vectors spread evenly over all, repeated if there are fewer."""
    places = np.linspace(0, count - 1, size).astype(np.int64)
    taken = [
        block[places[(places >= start) & (places < start + len(block))] - start]
        for start, block in blocks(files)
    ]
    return np.concatenate(taken)


class FaissIndex:
    """An index that `build` wrote, its largest part mapped. Threads may share it."""

    def __init__(self, path: Path, count: int, dimension: int) -> None:
        """Open a file whose hash the caller has checked, since faiss trusts its content.

        RetrievalError if faiss cannot read it or it does not hold `count` vectors of this dimension.
        """
        self._library = faiss_module()
        try:
            self._index = self._library.read_index(str(path), self._library.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise RetrievalError(f"{path}: damaged ({first_line(error)}); build the vectors again") from error
        if (self._index.ntotal, self._index.d) != (count, dimension):
            raise RetrievalError(f"{path}: damaged, not {count} rows of {dimension}; build the vectors again")
        self._lists = self._library.extract_index_ivf(self._index)
        self._codes = getattr(self._index, "refine_index", None)
        """Codes for re-scoring, or None for an index without."""

    def search(self, queries: NDArray[np.float32], k: int, nprobe: int) -> list[Found]:
        """Scores and places of about the k best for each query [Q, D], best first."""
        k = min(k, self._index.ntotal)
        lists = self._library.SearchParametersIVF(nprobe=min(nprobe, self._lists.nlist))
        settings = lists
        if self._codes is not None:
            factor = max(CANDIDATES, 4 * k) / k
            settings = self._library.IndexRefineSearchParameters(k_factor=factor, base_index_params=lists)
        scores_Q_K, places_Q_K = self._index.search(queries, k, params=settings)
        if len(short := np.flatnonzero(places_Q_K[:, -1] < 0)):  # the lists probed hold fewer than k
            scores_Q_K[short], places_Q_K[short] = self._search_all(queries[short], k)
        return list(zip(scores_Q_K, places_Q_K, strict=True))

    def _search_all(self, queries: NDArray[np.float32], k: int) -> Any:
        if self._codes is not None:
            return self._codes.search(queries, k)
        every_list = self._library.SearchParametersIVF(nprobe=self._lists.nlist)
        return self._index.search(queries, k, params=every_list)

    def decoded(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at these places as their codes give them, [N, D]."""
        if self._codes is None:
            self._lists.make_direct_map()
        vectors: NDArray[np.float32] = self._index.reconstruct_batch(places)
        return vectors


def exact_places(files: Sequence[Path], queries: NDArray[np.float32], k: int) -> list[NDArray[np.int64]]:
    """The places of the k best of all vectors for each query [Q, D]."""
    library = faiss_module()
    best = library.ResultHeap(len(queries), k, keep_max=True)
    for start, block in blocks(files):
        scores, places = library.knn(queries, block, min(k, len(block)), library.METRIC_INNER_PRODUCT)
        best.add_result(scores, places + start)
    best.finalize()
    return list(best.I)


def tune(
    search: Callable[[int], list[NDArray[np.int64]]], truth: list[NDArray[np.int64]], lists: int
) -> tuple[int, float]:
    """(nprobe, recall): the fewest lists that reach TARGET, or an eighth of all; search: nprobe → places."""
    most = min(lists, max(FEW_LISTS, lists // 8))
    steps = {most, *(size for i in range(32) for size in (2**i, 3 * 2**i) if size < most)}
    for nprobe in sorted(steps):
        reached = recall(search(nprobe), truth)
        if reached >= TARGET:
            break
    return nprobe, reached


def recall(found: Sequence[NDArray[np.int64]], truth: Sequence[NDArray[np.int64]]) -> float:
    """Mean fraction of each query's true places that were found."""
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, truth, strict=True)]))
