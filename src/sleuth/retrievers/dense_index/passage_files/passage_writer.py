"""Storing passages in the files that sleuth.retrievers.dense_index.passage_files.passages reads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec
import numpy as np

from sleuth.retrievers.dense_index.passage_files.content_hash import ContentHash
from sleuth.retrievers.dense_index.passage_files.passages import (
    BLOCKS,
    DELETED,
    IDS,
    PART_FILES,
    PARTS,
    PASSAGES,
    STARTS,
    Part,
    Rows,
    as_bytes,
    part_path,
)
from sleuth.types import Passage

_LINE_END = ord("\n")


class OtherPassagesError(Exception):
    """What a killed build left begins with other passages than those that come now."""


class PassageWriter:
    """Stores passages as one part; memory does not grow with their number.

    `earlier` are the parts before it, `content` the hash of their lines. The first `kept` bytes of lines
    are there already, left by a build that was killed: passages must turn out to be the same.
    """

    def __init__(
        self,
        directory: Path,
        *,
        earlier: Sequence[Part] = (),
        content: ContentHash | None = None,
        kept: int = 0,
    ) -> None:
        self._directory, self._earlier, self._kept = directory, list(earlier), kept
        self._number = len(self._earlier)
        self._encoder = msgspec.json.Encoder()
        self._content = content or ContentHash()
        self._line_end = self._id_end = 0
        self.count = 0
        """Passages of the part so far."""
        names = [part_path(directory, name, self._number) for name in PART_FILES]
        self._lines, self._ids, self._starts = (path.open("ab", buffering=1 << 18) for path in names)
        for file, size in zip(self._files, (kept, 0, 0), strict=True):
            file.truncate(size)
        self._old = names[0].open("rb")

    @property
    def _files(self) -> tuple[BinaryIO, ...]:
        return self._lines, self._ids, self._starts

    @property
    def part(self) -> Part:
        """The part as it is now."""
        return Part(self.count, self._line_end, self._id_end)

    @property
    def is_behind(self) -> bool:
        """Whether not all passages that were kept have come again yet."""
        return self._line_end < self._kept

    def add(self, passages: Sequence[Passage]) -> None:
        """Append passages; their text must hold no lone surrogate.

        Raises OtherPassagesError, and takes none of them, if others were kept in their place.
        """
        if not passages:
            return
        data = self._encoder.encode_lines(passages)
        if not self.is_behind:
            self._lines.write(data)
        elif self._old.read(len(data)) != data:
            raise OtherPassagesError
        names = [passage.id.encode() for passage in passages]
        # Line ends inside a text are escaped in JSON, so each one here ends a passage.
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _LINE_END) + 1
        lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
        pairs = np.column_stack([np.concatenate([[0], ends[:-1]]), np.cumsum(lengths) - lengths])
        self._ids.write(b"".join(names))
        self._append(pairs, len(data), int(lengths.sum()))
        self._content.update(data)

    def take(self, directory: Path, number: int, part: Part) -> None:
        """Append an earlier part, whose lines are in the hash of the content already."""
        for name, file in ((PASSAGES, self._lines), (IDS, self._ids)):
            with part_path(directory, name, number).open("rb") as old:
                shutil.copyfileobj(old, file)
        pairs = np.fromfile(part_path(directory, STARTS, number), dtype="<u8").reshape(-1, 2)
        self._append(pairs[:-1].astype(np.int64), part.line_bytes, part.id_bytes)

    def _append(self, pairs: Rows, line_bytes: int, id_bytes: int) -> None:
        """Note where lines and ids start, counted from the end so far, and how much they take."""
        pairs = pairs + np.array([self._line_end, self._id_end])
        self._starts.write(pairs.astype("<u8").tobytes())
        self._line_end += line_bytes
        self._id_end += id_bytes
        self.count += len(pairs)

    def sync(self) -> None:
        """Put what was added through to the disk."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())

    def finish(self, deleted: Rows | None = None) -> str:
        """Put everything through to the disk, `deleted` rows as well; returns the hash of the passages that count."""
        self._starts.write(np.array([self._line_end, self._id_end], dtype="<u8").tobytes())
        self.sync()
        parts = [*self._earlier, *([self.part] if self.count else [])]
        return write_lists(self._directory, parts, self._content, deleted)

    def close(self) -> None:
        """Close the files."""
        for file in (*self._files, self._old):
            file.close()

    def __enter__(self) -> PassageWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_lists(directory: Path, parts: Sequence[Part], content: ContentHash, deleted: Rows | None) -> str:
    """What parts there are, and which rows do not count; returns the hash of the passages that do."""
    left_out = b"" if deleted is None else as_bytes(deleted)
    lists = {PARTS: msgspec.json.encode(list(parts)), BLOCKS: content.blocks, DELETED: left_out}
    for name, data in lists.items():
        # Never written over: the old file may be a link to that of an index that is being searched.
        (directory / name).unlink(missing_ok=True)
        if data or name != DELETED:
            with (directory / name).open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    return content.hexdigest(left_out)
