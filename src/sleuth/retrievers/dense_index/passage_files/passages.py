"""The passages of an index: one JSON object a line, and where each line starts.

Separate from the search engine because a line is read in a microsecond, comes back exactly as it
went in, and stays readable by any other tool. Published files never change: passages added later are
a part of their own, three files that follow the first three, and those deleted are a list of rows.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from sleuth.errors import RetrievalError
from sleuth.types import Passage

PASSAGES = "passages.jsonl"
IDS = "passages.ids"
"""All ids, one after the other: ties are settled by ids alone, without touching the long lines."""
STARTS = "passages.starts"
"""Pairs of little-endian unsigned 64-bit offsets, where a passage's line and id start; last, where both files end."""
PART_FILES = (PASSAGES, IDS, STARTS)
PARTS = "passages.parts"
"""What parts there are, as JSON."""
BLOCKS = "passages.blocks"
"""SHA-256 of every full MiB of the lines of all parts, one after the other: see content_hash."""
DELETED = "passages.deleted"
"""Rows that no longer count, ascending, as little-endian unsigned 64-bit numbers; absent if there are none."""

_PAIR = struct.Struct("<2Q")
_SPAN = struct.Struct("<4Q")

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """Passages that were stored together."""

    count: int
    """Passages."""
    line_bytes: int
    id_bytes: int


def part_path(directory: Path, name: str, number: int) -> Path:
    """One of a part's three files: PASSAGES, IDS or STARTS, numbered but for the first part's."""
    return directory / (name.replace(".", f"-{number}.", 1) if number else name)


def read_parts(directory: Path) -> list[Part]:
    """The parts below a directory. RetrievalError if it holds none or their list is damaged."""
    path = directory / PARTS
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Part])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RetrievalError(f"cannot read {path}: {error}; build the index again") from error


def read_deleted(directory: Path) -> Rows:
    """Rows below a directory that no longer count, ascending."""
    try:
        found = np.frombuffer((directory / DELETED).read_bytes(), dtype="<u8")
    except FileNotFoundError:
        return np.empty(0, dtype=np.int64)
    except (OSError, ValueError) as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error
    return found.astype(np.int64)


def as_bytes(deleted: Rows) -> bytes:
    """Rows as DELETED holds them."""
    return deleted.astype("<u8").tobytes()


def passage_files(directory: Path) -> list[str]:
    """The names of all files below a directory that hold passages, by which it can be copied or linked."""
    numbers = range(len(read_parts(directory)))
    names = [part_path(directory, name, i).name for i in numbers for name in PART_FILES]
    return [*names, PARTS, BLOCKS, *([DELETED] if (directory / DELETED).exists() else [])]


class _OpenPart:
    """The files of one part, mapped."""

    def __init__(self, directory: Path, number: int, part: Part) -> None:
        self.path = part_path(directory, PASSAGES, number)
        self.lines, self.ids = _mapped(self.path), _mapped(part_path(directory, IDS, number))
        starts = part_path(directory, STARTS, number)
        self.starts = _mapped(starts)
        sizes = (part.line_bytes, part.id_bytes)
        is_whole = (len(self.lines), len(self.ids)) == sizes and len(self.starts) == (
            part.count + 1
        ) * _PAIR.size
        if not is_whole or _PAIR.unpack(self.starts[-_PAIR.size :]) != sizes:
            raise RetrievalError(f"{starts}: damaged, not {part.count} passages; build the index again")

    @property
    def id_starts(self) -> NDArray[np.uint64]:
        """Where ids start, and last where they end."""
        return np.frombuffer(self.starts, dtype="<u8")[1::2]

    def span(self, row: int) -> tuple[int, int, int, int]:
        """Start of line and id, then their ends."""
        first, id_first, end, id_end = _SPAN.unpack_from(self.starts, row * _PAIR.size)
        return first, id_first, end, id_end

    def name(self, row: int) -> bytes:
        """The id of a row, as UTF-8."""
        _, start, _, end = self.span(row)
        return self.ids[start:end]

    def names_of(self, rows: Sequence[int]) -> list[bytes]:
        """The same of many rows, each in a fifth of the time."""
        rows_N = np.asarray(rows)
        bounds = zip(self.id_starts[rows_N].tolist(), self.id_starts[rows_N + 1].tolist(), strict=True)
        return [self.ids[start:end] for start, end in bounds]

    def rows_of_length(self, length: int) -> tuple[Rows, Rows]:
        """Rows whose id takes that many bytes, and where those ids start."""
        starts = self.id_starts.astype(np.int64)
        rows = np.flatnonzero(np.diff(starts) == length)
        return rows, starts[rows]

    def find(self, wanted: bytes) -> Rows:
        """Rows with this id."""
        ids = np.frombuffer(self.ids, dtype=np.uint8)
        rows, starts = self.rows_of_length(len(wanted))
        for i, byte in enumerate(wanted):
            hit = ids[starts + i] == byte
            rows, starts = rows[hit], starts[hit]
        return rows

    def names(self) -> Iterator[bytes]:
        """All ids in order."""
        start = 0
        for end in self.id_starts[1:].tolist():
            yield self.ids[start:end]
            start = end


class PassageStore:
    """Every passage ever stored below a directory by its row, those deleted since as well. Threads may share it."""

    def __init__(self, directory: Path) -> None:
        parts = read_parts(directory)
        self._parts = [_OpenPart(directory, number, part) for number, part in enumerate(parts)]
        self._firsts = [0]
        for part in parts:
            self._firsts.append(self._firsts[-1] + part.count)
        self._decoder = msgspec.json.Decoder(Passage)
        self.deleted = read_deleted(directory)
        """Rows that no longer count, ascending."""
        if len(self.deleted) and not 0 <= self.deleted[-1] < len(self):
            raise RetrievalError(f"{directory / DELETED}: damaged; build the index again")

    def __len__(self) -> int:
        return self._firsts[-1]

    def id(self, row: int) -> str:
        """The id of a passage, without reading the rest."""
        part, place = self._place(row)
        try:
            return part.name(place).decode()
        except UnicodeDecodeError as error:
            raise RetrievalError(self._damaged(part, place, error)) from error

    def names_of(self, rows: Sequence[int]) -> list[bytes]:
        """Ids of passages as UTF-8, in which form they sort as they do as text."""
        if len(self._parts) == 1:
            return self._parts[0].names_of(rows)
        return [part.name(place) for part, place in map(self._place, rows)]

    def line(self, row: int) -> bytes:
        """A passage as it is stored."""
        part, place = self._place(row)
        start, _, end, _ = part.span(place)
        return part.lines[start:end]

    def __getitem__(self, row: int) -> Passage:
        part, place = self._place(row)
        start, _, end, _ = part.span(place)
        try:
            return self._decoder.decode(part.lines[start:end])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RetrievalError(self._damaged(part, place, error)) from error

    def find(self, name: str) -> int | None:
        """Row of the passage with this id that counts, or None. Reads the ids of that length: a second for 20 million."""
        wanted = name.encode("utf-8", "surrogatepass")
        for first, part in zip(self._firsts, self._parts, strict=False):
            rows = first + part.find(wanted)
            if len(alive := rows[~np.isin(rows, self.deleted)]):
                return int(alive[0])
        return None

    def find_all(self, names: Sequence[str]) -> dict[str, int]:
        """The same for many ids at once, those that are there: reads all ids, a second for 5 million."""
        wanted = {name.encode("utf-8", "surrogatepass"): name for name in names}
        found: dict[str, int] = {}
        deleted = set(self.deleted.tolist())
        for first, part in zip(self._firsts, self._parts, strict=False):
            for row, name in enumerate(part.names(), first):
                if name in wanted and row not in deleted:
                    found[wanted[name]] = row
        return found

    def names(self) -> Iterator[str]:
        """The ids of the passages that count, in order."""
        deleted = set(self.deleted.tolist())
        for first, part in zip(self._firsts, self._parts, strict=False):
            yield from (name.decode() for row, name in enumerate(part.names(), first) if row not in deleted)

    def read(self, start: int) -> bytes:
        """The lines from a place in the stream of all parts' lines to its end."""
        held = []
        for part in self._parts:
            held.append(part.lines[max(0, start) :] if start < len(part.lines) else b"")
            start -= len(part.lines)
        return b"".join(held)

    def _place(self, row: int) -> tuple[_OpenPart, int]:
        number = bisect_right(self._firsts, row) - 1
        return self._parts[number], row - self._firsts[number]

    def _damaged(self, part: _OpenPart, row: int, error: Exception) -> str:
        return f"{part.path}: passage {row} is damaged ({error}); build the index again"


class PassageReader:
    """Reads any passage that counts by its place among them. Threads may share it."""

    def __init__(self, directory: Path, count: int) -> None:
        self._store = PassageStore(directory)
        # A passage's row is its place plus the number of deleted ones before it.
        self._shifts = self._store.deleted - np.arange(len(self._store.deleted))
        if len(self._store) - len(self._shifts) != count:
            raise RetrievalError(f"{directory / PARTS}: damaged, not {count} passages; build the index again")

    def id(self, place: int) -> str:
        """The id of a passage, without reading the rest."""
        return self._store.id(self._row(place))

    def find(self, name: str) -> int | None:
        """Place of the passage with this id, or None; see PassageStore.find."""
        row = self._store.find(name)
        return None if row is None else row - int(np.searchsorted(self._store.deleted, row))

    def __getitem__(self, place: int) -> Passage:
        return self._store[self._row(place)]

    def _row(self, place: int) -> int:
        if not len(self._shifts):
            return place
        return place + int(np.searchsorted(self._shifts, place, side="right"))


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error
