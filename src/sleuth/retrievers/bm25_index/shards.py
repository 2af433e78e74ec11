"""ShardedBuild: passages and words of an index in the making, put through to the disk shard by shard.

A shard ends with three steps, in this order: its passages are on the disk, the journal says how many
there are, the engine has committed their words. After a kill the last line of the journal that agrees
with the engine is where both stand, and what lies beyond is cut off. The source is then read from its
beginning and compared, byte for byte, with what was kept: a source, or a setting, that has changed can
never be mixed with what was made before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from types import TracebackType

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.index_writer import FOLDER, IndexWriter
from sleuth.retrievers.index_files.passage_writer import OtherPassagesError, PassageWriter
from sleuth.retrievers.index_files.passages import PASSAGES, Part
from sleuth.retrievers.index_files.publish import JOURNAL
from sleuth.types import Passage

SHARD_PASSAGES = 250_000
"""Most passages in a shard: what a kill may cost is the indexing of so many, a quarter of a minute on two cores.

Each of the engine's threads writes one segment a shard, and the engine merges eight of like size into one while the
build goes on: fewer segments are searched faster, and at this size a million passages on two cores end as one.
"""
SHARD_BYTES = 200 << 20
"""Most bytes of their lines, which also bounds what waits in memory for the engine's threads."""


class ShardedBuild:
    """Adds passages to what is below `content`; goes on with what a killed build left there."""

    def __init__(self, content: Path) -> None:
        self._content = content
        self._journal = content.parent / JOURNAL
        self._open(_kept(self._journal, content))

    def _open(self, kept: Part | None) -> None:
        if kept is None:
            self._journal.unlink(missing_ok=True)
            shutil.rmtree(self._content)
            self._content.mkdir()
        self._shard = self._kept = kept or Part(0, 0, 0)
        self._words = IndexWriter(self._content)
        self._store = PassageWriter(self._content, kept=self._kept.line_bytes)

    @property
    def count(self) -> int:
        """Passages taken so far."""
        return self._store.count

    @property
    def num_resumed(self) -> int:
        """Passages that need not be indexed, since a killed build has done so; known to be the same as far as `count`."""
        return self._kept.count

    def add(self, passages: Sequence[Passage]) -> None:
        """The next passages, whose ids are new."""
        row, was_behind = self.count, self._store.is_behind
        try:
            self._store.add(passages)
        except OtherPassagesError:
            self._start_again()
            self.add(passages)
            return
        if was_behind:
            return
        self._words.add(row, passages)
        part = self._store.part
        if (
            part.count - self._shard.count >= SHARD_PASSAGES
            or part.line_bytes - self._shard.line_bytes >= SHARD_BYTES
        ):
            self._commit()

    def finish(self) -> str:
        """Put everything through to the disk; returns the hash of the passages."""
        if self._store.is_behind:  # the source has fewer passages than were kept
            self._start_again()
        self._commit()
        self._words.finish()
        return self._store.finish()

    def _commit(self) -> None:
        self._store.sync()
        self._shard = self._store.part
        with self._journal.open("ab") as file:
            file.write(msgspec.json.encode(self._shard) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._words.commit()

    def _start_again(self) -> None:
        """Index anew what was found to be the same so far: the rest of what was kept is of another source."""
        end = self._store.part.line_bytes
        self.close()
        old = self._content.with_name("old")
        shutil.rmtree(old, ignore_errors=True)
        self._journal.unlink(missing_ok=True)
        self._content.rename(old)
        self._content.mkdir()
        self._open(None)
        for some in _stored(old / PASSAGES, end):
            self.add(some)
        shutil.rmtree(old)

    def close(self) -> None:
        """End the engine's threads and close the files."""
        self._words.close()
        self._store.close()

    def __enter__(self) -> ShardedBuild:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _kept(journal: Path, content: Path) -> Part | None:
    """Where the passages and the words of a killed build both stand; None if nowhere."""
    shards = []
    try:
        for line in journal.read_bytes().splitlines():
            shards.append(msgspec.json.decode(line, type=Part))
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass  # the line that was being written at the kill; those before it count
    lines = content / PASSAGES
    if not (lines.exists() and (content / FOLDER).exists()):
        return None
    try:
        with IndexWriter(content, threads=1) as words:
            num_committed = words.num_committed
    except RetrievalError:  # killed while the engine made its first files
        return None
    found = next((shard for shard in shards if shard.count == num_committed), None)
    if found is None or lines.stat().st_size < found.line_bytes:
        return None
    kept = [shard for shard in shards if shard.count <= num_committed]
    _rewrite(journal, kept)
    return found


def _rewrite(journal: Path, shards: Sequence[Part]) -> None:
    fresh = journal.with_name(f"{journal.name}.new")
    with fresh.open("wb") as file:
        file.writelines(msgspec.json.encode(shard) + b"\n" for shard in shards)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(journal)


def _stored(path: Path, end: int) -> Iterator[list[Passage]]:
    """The passages in the first `end` bytes of a file of lines, some at a time."""
    decoder = msgspec.json.Decoder(Passage)
    with path.open("rb") as file:
        while end > 0:
            lines = list(islice(file, 1000))
            sizes = accumulate(map(len, lines))
            lines = [line for line, size in zip(lines, sizes, strict=True) if size <= end]
            end -= sum(map(len, lines))
            yield [decoder.decode(line) for line in lines]
