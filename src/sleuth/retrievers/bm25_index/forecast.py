"""What building an index will take, before it is begun. Measured shares, rounded up: see docs/retrieval.md."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sleuth.retrievers.bm25_index.index_writer import HEAP_BYTES
from sleuth.retrievers.bm25_index.shards import SHARD_BYTES

_PROCESS = 160_000_000
"""Bytes of memory for Python, its libraries and the passages on their way."""
_PER_ID = 24
"""Bytes of memory by which a repeated id is noticed, while two runs are merged."""
_PER_PASSAGE = 70
"""Bytes on disk for where a passage starts, its id, and the names of its fields."""
_WORDS = 0.3
"""Size of the inverted index in proportion to the text; as much again while segments are merged."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bytes, at most."""

    memory: int
    """Of the process itself. Files that are mapped while segments are merged come on top, and can be dropped at any time."""
    disk: int
    """While it is built; what stays is about a fifth less."""


def forecast(num_passages: int, num_bytes: int) -> Forecast:
    """For so many passages of so many bytes in all."""
    held = min(HEAP_BYTES, num_bytes, SHARD_BYTES)
    return Forecast(
        memory=round(_PROCESS + held + _PER_ID * num_passages),
        disk=round(num_bytes * (1 + 2 * _WORDS) + _PER_PASSAGE * num_passages),
    )


def free_bytes(directory: Path) -> int:
    """What is free on the disk on which a directory is, or would be."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
