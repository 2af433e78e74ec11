"""The passages of an index: one JSON object a line, and where each line starts.

Separate from the search engine because a line is read in a microsecond, comes back exactly as it
went in, and stays readable by any other tool (it is a corpus file that can be indexed again).
"""

from __future__ import annotations

import hashlib
import mmap
import os
from pathlib import Path
from types import TracebackType

import msgspec

from sleuth.errors import RetrievalError
from sleuth.types import Passage

PASSAGES = "passages.jsonl"
STARTS = "passages.starts"
"""Little-endian unsigned 64-bit byte offsets: one per passage, then the length of the file."""

_OFFSET_BYTES = 8


class PassageWriter:
    """Appends passages to a directory; memory does not grow with their number."""

    def __init__(self, directory: Path) -> None:
        self._lines = (directory / PASSAGES).open("xb", buffering=1 << 20)
        self._starts = (directory / STARTS).open("xb", buffering=1 << 16)
        self._encoder = msgspec.json.Encoder()
        self._hash = hashlib.sha256()
        self._end = 0
        self.count = 0
        """Passages written so far."""

    def add(self, passage: Passage) -> None:
        """Append one passage; its text must hold no lone surrogate."""
        line = self._encoder.encode(passage) + b"\n"
        self._starts.write(self._end.to_bytes(_OFFSET_BYTES, "little"))
        self._lines.write(line)
        self._hash.update(line)
        self._end += len(line)
        self.count += 1

    def finish(self) -> str:
        """Write everything through to the disk; returns the SHA-256 of the passages file."""
        self._starts.write(self._end.to_bytes(_OFFSET_BYTES, "little"))
        for file in (self._lines, self._starts):
            file.flush()
            os.fsync(file.fileno())
        return self._hash.hexdigest()

    def __enter__(self) -> PassageWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._starts.close()


class PassageReader:
    """Reads any passage by its row. Threads may share it."""

    def __init__(self, directory: Path, count: int) -> None:
        self._path = directory / PASSAGES
        with self._path.open("rb") as lines:
            self._lines = mmap.mmap(lines.fileno(), 0, access=mmap.ACCESS_READ)
        with (directory / STARTS).open("rb") as starts:
            self._starts = mmap.mmap(starts.fileno(), 0, access=mmap.ACCESS_READ)
        self._decoder = msgspec.json.Decoder(Passage)
        if len(self._starts) != (count + 1) * _OFFSET_BYTES:
            raise RetrievalError(
                f"{directory / STARTS}: damaged, not {count + 1} offsets; build the index again"
            )

    def __getitem__(self, row: int) -> Passage:
        at = row * _OFFSET_BYTES
        start = int.from_bytes(self._starts[at : at + _OFFSET_BYTES], "little")
        end = int.from_bytes(self._starts[at + _OFFSET_BYTES : at + 2 * _OFFSET_BYTES], "little")
        try:
            return self._decoder.decode(self._lines[start:end])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RetrievalError(
                f"{self._path}: passage {row} is damaged ({error}); build the index again"
            ) from error
