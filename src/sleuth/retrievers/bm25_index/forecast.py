"""Memory and disk that building an index will take. Measured shares, rounded up: see docs/retrieval.md."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from sleuth.retrievers.bm25_index.writer import HEAP_BYTES

_PROCESS = 160_000_000
"""Bytes of memory for Python, its libraries and the passages being read."""
_PER_ID = 24
"""Bytes of memory for an id while two runs of SeenIds are merged."""
_PER_PASSAGE = 100
"""Bytes on disk for an id, a row and the names of the fields."""
_SIZE = 1.1
"""Size of stored passages and words in proportion to the text."""
_MERGING = 2
"""Segments that are being merged are on disk twice."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bytes, at most."""

    memory: int
    """Memory of the process, without mapped files, which the system can drop at any time."""
    disk: int
    """During the build; about half of it stays."""


def forecast(num_passages: int, num_bytes: int) -> Forecast:
    """Return what an index of this many passages with this much text will take."""
    return Forecast(
        memory=round(_PROCESS + min(HEAP_BYTES, num_bytes) + _PER_ID * num_passages),
        disk=round(_MERGING * (num_bytes * _SIZE + _PER_PASSAGE * num_passages)),
    )


def free_bytes(directory: Path) -> int:
    """Return the free space on the disk of a directory, which need not exist yet."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
