"""Memory and disk that building an index of words or vectors will take, rounded up: see docs/retrieval.md."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from sleuth.retrievers.bm25_index.writer import HEAP_BYTES
from sleuth.retrievers.dense_index import faiss_index
from sleuth.retrievers.dense_index.build import default_backend
from sleuth.retrievers.dense_index.manifest import Backend

_PROCESS = 160_000_000  # Bytes of memory for Python, its libraries and the passages being read.
_PER_ID = 24  # Bytes of memory for an id while two runs of SeenIds are merged.
_PER_PASSAGE = 100  # Bytes on disk for an id, a row and the names of the fields.
_SIZE = 1.1  # Size of stored passages and words in proportion to the text.
_MERGING = 2  # Segments that are being merged are on disk twice.
_FLOAT, _HALF, _ROW = 4, 2, 8  # Bytes of a float32, a float16, and a row number or hash.
_OTHER = 64_000_000  # Bytes of memory for the passages being encoded and faiss's own structures.


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bytes, at most."""

    memory: int  # Memory of the process, without mapped files, which the system can drop at any time.
    disk: int  # During the build; about half of it stays.


def forecast(num_passages: int, num_bytes: int) -> Forecast:
    """Return what an index of this many passages with this much text will take."""
    return Forecast(
        memory=round(_PROCESS + min(HEAP_BYTES, num_bytes) + _PER_ID * num_passages),
        disk=round(_MERGING * (num_bytes * _SIZE + _PER_PASSAGE * num_passages)),
    )


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


def free_bytes(directory: Path) -> int:
    """Return the free space on the disk of a directory, which need not exist yet."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
