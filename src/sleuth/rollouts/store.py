"""Trajectories on disk: append-only JSON lines, any record readable at once.

One record per line, so that any tool can read the file. A line without its newline is a write
that was cut short: readers ignore it and the next writer removes it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.types import Trajectory

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Trajectory)


class TrajectoryWriter:
    """Appends trajectories to a file; each is on its way to the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        _drop_torn_tail(path)

    def append(self, trajectory: Trajectory) -> None:
        """Write one record."""
        try:
            record = _ENCODER.encode(trajectory)
        except UnicodeEncodeError:
            # A lone surrogate in a question or passage is no text; it must not cost the run.
            record = _ENCODER.encode(_storable(msgspec.to_builtins(trajectory)))
        self._file.write(record + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; harmless if closed already."""
        self._file.close()

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
        self._starts = [0]
        end = self._map.find(b"\n")
        while end >= 0:
            self._starts.append(end + 1)
            end = self._map.find(b"\n", end + 1)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> Trajectory:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self._path}: no record {index} among {len(self)}")
        index %= len(self)
        line = self._map[self._starts[index] : self._starts[index + 1] - 1]
        try:
            return _DECODER.decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{self._path}:{index + 1}: {error}") from error

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[i] for i in range(len(self)))


def _storable(value: Any) -> Any:
    """Plain values with every lone surrogate replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list | tuple) else value


def _drop_torn_tail(path: Path) -> None:
    """Cut the file after its last newline, where an earlier writer was killed mid-record."""
    with path.open("rb+") as file:
        size = file.seek(0, 2)
        position = size
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            newline = file.read(position - start).rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position < size:
            file.truncate(position)
