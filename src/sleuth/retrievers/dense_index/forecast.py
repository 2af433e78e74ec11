"""Forecast of the disk and memory that a build of vectors takes."""

from sleuth.retrievers.bm25_index.forecast import Forecast
from sleuth.retrievers.dense_index import faiss_index
from sleuth.retrievers.dense_index.build import default_backend
from sleuth.retrievers.dense_index.manifest import Backend

_FLOAT, _HALF, _ROW = 4, 2, 8
"""Bytes of a float32, a float16, and a row number or hash."""
_OTHER = 64_000_000
"""Bytes of memory for the passages being encoded and faiss's own structures."""


def forecast_vectors(num_passages: int, dimension: int, backend: Backend | None = None) -> Forecast:
    """Bounds for this number of vectors, the encoder excluded; backend None = as build_dense chooses."""
    backend = backend or default_backend(num_passages)
    numbers, rows = num_passages * dimension, 2 * _ROW * num_passages
    if backend == "exact":
        return Forecast(_OTHER, 2 * _FLOAT * numbers + rows)
    sample = _FLOAT * dimension * faiss_index.num_sampled(num_passages)
    codes = numbers + _ROW * num_passages + (numbers // 8 if backend == "pq-sq8" else 0)
    # Training copies the sample; adding vectors doubles the room for codes when it is full.
    return Forecast(_OTHER + max(2 * sample, 2 * codes), _HALF * numbers + codes + rows)
