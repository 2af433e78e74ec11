"""What building vectors will take, before it is begun: on disk, and in memory beside the encoder itself."""

from __future__ import annotations

from dataclasses import dataclass

from sleuth.retrievers.dense_index import faiss_index
from sleuth.retrievers.dense_index.build import default_backend
from sleuth.retrievers.dense_index.manifest import Backend

_FLOAT, _HALF = 4, 2
"""Bytes of a number."""
_ROW = 8
"""Bytes of a passage's number in a list of faiss."""
_BESIDE = 64_000_000
"""Bytes of memory for the passages on their way, and what faiss needs besides."""


@dataclass(frozen=True, slots=True)
class VectorForecast:
    """Bytes, at most."""

    memory: int
    """Anonymous memory of the process beside the encoder's; files are mapped."""
    disk: int
    """While it is built."""


def forecast_vectors(num_passages: int, dimension: int, backend: Backend | None = None) -> VectorForecast:
    """For so many vectors, kept as `backend` keeps them; None = as build_dense chooses."""
    backend = backend or default_backend(num_passages)
    numbers = num_passages * dimension
    if backend == "exact":
        return VectorForecast(_BESIDE, _FLOAT * numbers)
    # What the sample is copied to while centroids are placed, then the index and one block on its way into it.
    sample = _FLOAT * dimension * faiss_index.num_sampled(num_passages)
    block = _FLOAT * dimension * min(num_passages, faiss_index.ADD)
    coded = (numbers // 8 if backend == "pq-sq8" else numbers) + _ROW * num_passages
    codes = numbers if backend == "pq-sq8" else 0
    return VectorForecast(
        memory=_BESIDE + max(2 * sample, block + 2 * coded), disk=_HALF * numbers + codes + coded
    )
