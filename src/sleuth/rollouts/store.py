"""Trajectories on disk: append-only JSON lines with random access.

One record per line, so that any tool can read the file. Readers ignore a last line without its
newline, where a writer was killed.
"""

import math
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.storage import LinesWriter
from sleuth.types import Trajectory

_DECODER = msgspec.json.Decoder(Trajectory)


def decode(line: bytes) -> Trajectory:
    """A stored trajectory. The total of an invalid score is NaN, which JSON holds as null."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError:
        plain = msgspec.json.decode(line, type=dict[str, Any])
        score = plain.get("score")
        if not (score and score.get("invalid")):
            raise
        return msgspec.convert(plain | {"score": score | {"total": math.nan}}, Trajectory)


class TrajectoryWriter(LinesWriter):
    """Appends trajectories to a file."""

    append = LinesWriter.write


class TrajectoryReader:
    """A sequence of the trajectories in a file, decoded one at a time.

    Opening costs one scan for line ends; record i is then read without the others.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        self._path = path
        size = path.stat().st_size
        self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        self._starts = [0, *(end.end() for end in re.finditer(b"\n", self._map))]

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> Trajectory:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self._path}: no record {index} among {len(self)}")
        index %= len(self)
        line = self._map[self._starts[index] : self._starts[index + 1] - 1]
        try:
            return decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{self._path}:{index + 1}: {error}") from error

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[i] for i in range(len(self)))
