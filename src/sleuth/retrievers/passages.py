"""The passages of an index: one JSON object a line, and where each line starts.

Separate from the search engine because a line is read in a microsecond, comes back exactly as it
went in, and stays readable by any other tool (it is a corpus file that can be indexed again).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from pathlib import Path
from types import TracebackType

import msgspec
import numpy as np

from sleuth.errors import RetrievalError
from sleuth.types import Passage

PASSAGES = "passages.jsonl"
IDS = "passages.ids"
"""All ids, one after the other: ties are settled by ids alone, without touching the long lines."""
STARTS = "passages.starts"
"""Pairs of little-endian unsigned 64-bit offsets, where a passage's line and id start; last, where both files end."""

_PAIR = struct.Struct("<2Q")
_SPAN = struct.Struct("<4Q")


class PassageWriter:
    """Appends passages to a directory; memory does not grow with their number."""

    def __init__(self, directory: Path) -> None:
        self._lines = (directory / PASSAGES).open("xb", buffering=1 << 20)
        self._ids = (directory / IDS).open("xb", buffering=1 << 16)
        self._starts = (directory / STARTS).open("xb", buffering=1 << 16)
        self._encoder = msgspec.json.Encoder()
        self._hash = hashlib.sha256()
        self._line_end = self._id_end = 0
        self.count = 0
        """Passages written so far."""

    def add(self, passage: Passage) -> None:
        """Append one passage; its text must hold no lone surrogate."""
        line, name = self._encoder.encode(passage) + b"\n", passage.id.encode()
        self._starts.write(_PAIR.pack(self._line_end, self._id_end))
        self._lines.write(line)
        self._ids.write(name)
        self._hash.update(line)
        self._line_end += len(line)
        self._id_end += len(name)
        self.count += 1

    def finish(self) -> str:
        """Write everything through to the disk; returns the SHA-256 of the passages file."""
        self._starts.write(_PAIR.pack(self._line_end, self._id_end))
        for file in (self._lines, self._ids, self._starts):
            file.flush()
            os.fsync(file.fileno())
        return self._hash.hexdigest()

    def __enter__(self) -> PassageWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._lines, self._ids, self._starts):
            file.close()


class PassageReader:
    """Reads any passage by its row. Threads may share it."""

    def __init__(self, directory: Path, count: int) -> None:
        self._path = directory / PASSAGES
        self._lines = _mapped(self._path)
        self._ids = _mapped(directory / IDS)
        self._starts = _mapped(directory / STARTS)
        self._decoder = msgspec.json.Decoder(Passage)
        if len(self._starts) != (count + 1) * _PAIR.size:
            raise RetrievalError(
                f"{directory / STARTS}: damaged, not {count + 1} pairs; build the index again"
            )

    def id(self, row: int) -> str:
        """The id of a passage, without reading the rest."""
        _, start, _, end = _SPAN.unpack_from(self._starts, row * _PAIR.size)
        try:
            return self._ids[start:end].decode()
        except UnicodeDecodeError as error:
            raise RetrievalError(self._damaged(row, error)) from error

    def find(self, name: str) -> int | None:
        """Row of the passage with this id, or None. Reads the ids of that length: a second for 20 million."""
        wanted = name.encode("utf-8", "surrogatepass")
        ids = np.frombuffer(self._ids, dtype=np.uint8)
        starts = np.frombuffer(self._starts, dtype="<u8").reshape(-1, 2)[:, 1].astype(np.int64)
        rows = np.flatnonzero(np.diff(starts) == len(wanted))
        for i, byte in enumerate(wanted):
            rows = rows[ids[starts[rows] + i] == byte]
        return int(rows[0]) if len(rows) else None

    def __getitem__(self, row: int) -> Passage:
        start, _, end, _ = _SPAN.unpack_from(self._starts, row * _PAIR.size)
        try:
            return self._decoder.decode(self._lines[start:end])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RetrievalError(self._damaged(row, error)) from error

    def _damaged(self, row: int, error: Exception) -> str:
        return f"{self._path}: passage {row} is damaged ({error}); build the index again"


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error
