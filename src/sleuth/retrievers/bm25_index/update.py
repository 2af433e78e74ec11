"""Adding passages to an index, and deleting them, without building it again.

The files of the index are linked into its successor, which is then published like a build: who has the
index open keeps what it held, whoever opens it later sees the change, and a kill changes nothing. What is
written is what is new, and the last stored passages again while those are few.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.build import (
    CHUNK,
    NAMED_DUPLICATES,
    Distinct,
    IndexInfo,
    SeenIds,
    build_index,
    describe,
)
from sleuth.retrievers.bm25_index.index import check_analyser, check_opened
from sleuth.retrievers.bm25_index.index_writer import FOLDER, IndexWriter, num_threads
from sleuth.retrievers.bm25_index.integrity import check_content, check_places, other_passages
from sleuth.retrievers.bm25_index.shards import SHARD_BYTES
from sleuth.retrievers.index_files.content_hash import ContentHash
from sleuth.retrievers.index_files.manifest import Manifest, read_manifest
from sleuth.retrievers.index_files.passage_writer import PassageWriter, write_lists
from sleuth.retrievers.index_files.passages import (
    BLOCKS,
    PART_FILES,
    Part,
    PassageReader,
    PassageStore,
    Rows,
    as_bytes,
    part_path,
    read_parts,
)
from sleuth.retrievers.index_files.publish import (
    linked_or_copied,
    one_update,
    overtaken,
    publish,
    updating,
)
from sleuth.types import Passage

SMALL_PART = 16 << 20
"""Bytes of lines; a last part of fewer is stored again together with what is added, so that parts stay few."""
MOST_PARTS = 64
"""At so many, the later half is stored again as one, since every part takes three open files."""
FEW = 8
"""Ids that are looked up one by one; for more, all ids of the index are read once."""


@dataclass(frozen=True, slots=True)
class UpdateInfo:
    """What an update did."""

    directory: Path
    num_passages: int
    """In the index now."""
    sha256: str
    """What `identity()` of the retriever names now."""
    num_added: int = 0
    """New passages, those that replace others included."""
    num_replaced: int = 0
    num_deleted: int = 0
    num_duplicates: int = 0
    """Passages left out because one with their id is there, or came before."""
    duplicates: tuple[str, ...] = ()
    """The first few of their ids."""
    num_unknown: int = 0
    """Ids to delete that no passage has."""
    unknown: tuple[str, ...] = ()
    """The first few of them."""


def add_passages(
    passages: Iterable[Passage],
    directory: Path,
    *,
    replace: bool = False,
    progress: Callable[[int], None] | None = None,
) -> UpdateInfo:
    """Add `passages` to the index in `directory`; one whose id is there already is left out and counted.

    replace: it takes the place of the one that is there instead. Of passages that come with the same id
    the first counts in either case. If nothing is left to add, the index stays as it was. `progress` is
    called with the number of passages taken so far.
    Raises RetrievalError if there is no index, a passage is malformed, or the index was built again
    meanwhile; it is then as it was.
    """
    with _successor(Path(directory)) as index:
        new = _New(passages, index.store, replace=replace, progress=progress)
        num_added = index.add(iter(new), new.replaced)
        return dataclasses.replace(
            index.info,
            num_added=num_added,
            num_replaced=len(new.replaced),
            num_duplicates=new.num_left_out + new.distinct.num_duplicates,
            duplicates=(*new.left_out, *new.distinct.duplicates)[:NAMED_DUPLICATES],
        )


def delete_passages(ids: Iterable[str], directory: Path) -> UpdateInfo:
    """Delete the passages with these ids from the index in `directory`; ids that no passage has are counted.

    If none has one, the index stays as it was. An index whose last passage is deleted finds nothing, and
    can be added to. Their text stays in the files, and their words in the counts by which words are
    weighed, until `compact_index`.
    Raises RetrievalError if there is no index, an id is not text, or the index was built again meanwhile.
    """
    if isinstance(ids, str):
        raise RetrievalError(f"ids must be a list of texts, not the text {ids[:80]!r}")
    wanted = list(dict.fromkeys(ids))
    for name in wanted:
        if not isinstance(name, str):
            raise RetrievalError(f"an id must be text, not {name!r}")
    with _successor(Path(directory)) as index:
        rows = _rows(index.store, wanted)
        unknown = [name for name in wanted if name not in rows]
        if rows:
            index.delete(sorted(rows.values()))
        return dataclasses.replace(
            index.info,
            num_deleted=len(rows),
            num_unknown=len(unknown),
            unknown=tuple(unknown[:NAMED_DUPLICATES]),
        )


def compact_index(directory: Path, *, progress: Callable[[int], None] | None = None) -> IndexInfo:
    """Build the index in `directory` again from the passages that count: what was deleted is then gone for good.

    Raises RetrievalError if there is no index, it is damaged, no passage is left, or it was built again meanwhile.
    """
    directory = Path(directory)
    with _os_errors_told(directory), one_update(directory) as manifest:
        generation = directory / manifest.generation
        check_content(generation, manifest)  # a passage that was damaged would be given a hash of its own
        check_places(generation)
        reader = PassageReader(generation, manifest.num_passages)
        alive = (reader[place] for place in range(manifest.num_passages))
        return build_index(alive, directory, progress=progress, base=manifest.generation)


def bytes_stored_again(directory: Path) -> int:
    """Bytes of passages in the last parts of an index, which come into a new one with what is added.

    Raises RetrievalError if there is no index.
    """
    parts = read_parts(directory / read_manifest(directory).generation)
    return sum(part.line_bytes + part.id_bytes for part in parts[_num_kept(parts) :])


class _New:
    """Those of a stream of passages that are to be added to what `store` holds, some at a time."""

    def __init__(
        self,
        passages: Iterable[Passage],
        store: PassageStore,
        *,
        replace: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.distinct = Distinct(passages)
        self.num_left_out = 0
        self.left_out: list[str] = []
        """The first few ids of those that are there already."""
        self.replaced: list[str] = []
        """Ids of passages that are there and give way."""
        self._store, self._replace, self._progress = store, replace, progress
        self._seen: SeenIds | None = None

    def __iter__(self) -> Iterator[list[Passage]]:
        for chunk in self.distinct:
            known = self._known([passage.id for passage in chunk])
            there = [p.id for p, is_known in zip(chunk, known, strict=True) if is_known]
            if self._replace:
                self.replaced += there
                yield chunk
            else:
                self.num_left_out += len(there)
                self.left_out += there[: NAMED_DUPLICATES - len(self.left_out)]
                yield [p for p, is_known in zip(chunk, known, strict=True) if not is_known]
            if self._progress:
                self._progress(self.distinct.num_taken)

    def _known(self, ids: Sequence[str]) -> list[bool]:
        """For each id, whether the index has it."""
        if self._seen is None and len(ids) <= FEW:
            return [self._store.find(name) is not None for name in ids]
        if self._seen is None:
            self._seen = SeenIds()
            names = self._store.names()
            while some := list(islice(names, CHUNK)):
                self._seen.add(some)
        return self._seen.known(ids)


class _Successor:
    """What becomes of an index by one update."""

    def __init__(self, directory: Path, manifest: Manifest, content: Path) -> None:
        self._directory, self._manifest, self._content = directory, manifest, content
        self._old = directory / manifest.generation
        check_opened(self._old, manifest)
        check_analyser(directory, manifest)
        self.store = PassageStore(self._old)
        self._parts = read_parts(self._old)

    def add(self, chunks: Iterator[list[Passage]], replaced: list[str]) -> int:
        """Add passages, delete those with the ids that are in `replaced` when `chunks` end; returns how many were added."""
        first = next((chunk for chunk in chunks if chunk), None)
        if first is None:
            return 0
        kept = _num_kept(self._parts)
        self._link(kept)
        threads = num_threads() if len(first) > CHUNK // 2 else 1
        with (
            IndexWriter(self._content, threads) as words,
            PassageWriter(self._content, earlier=self._parts[:kept], content=self._hash()) as stored,
        ):
            for number in range(kept, len(self._parts)):
                stored.take(self._old, number, self._parts[number])
            start = row = len(self.store)
            waiting = 0
            for chunk in chain([first], chunks):
                words.add(row, chunk)
                stored.add(chunk)
                row += len(chunk)
                waiting += sum(len(passage.text) for passage in chunk)
                if waiting >= SHARD_BYTES:  # the engine's queue is bounded in passages, not in bytes
                    words.commit()
                    waiting = 0
            rows = sorted(_rows(self.store, replaced).values())
            words.delete(rows)
            words.finish()
            deleted = _with(self.store.deleted, rows)
            sha256 = stored.finish(deleted)
        self._publish(row - len(deleted), sha256)
        return row - start

    def delete(self, rows: Sequence[int]) -> None:
        """Delete the passages in these rows, one or more."""
        self._link(len(self._parts))
        with IndexWriter(self._content, threads=1) as words:
            words.delete(rows)
            words.finish()
        deleted = _with(self.store.deleted, rows)
        self._publish(
            len(self.store) - len(deleted), write_lists(self._content, self._parts, self._hash(), deleted)
        )

    @property
    def info(self) -> UpdateInfo:
        """The index as it is now."""
        return UpdateInfo(self._directory, self._manifest.num_passages, self._manifest.sha256)

    def _hash(self) -> ContentHash:
        """The hash of all lines so far, of which only the last MiB at most is read.

        It must be the manifest's: a passage that was damaged would else be given a hash of its own.
        """
        content = ContentHash((self._old / BLOCKS).read_bytes())
        content.update(self.store.read(content.start))
        if content.hexdigest(as_bytes(self.store.deleted)) != self._manifest.sha256:
            raise RetrievalError(other_passages(self._old))
        return content

    def _link(self, num_parts: int) -> None:
        """Take over the engine's files and the first parts; what they hold never changes."""
        names = {part_path(self._old, name, i).name for i in range(num_parts) for name in PART_FILES}
        names |= {name for name in self._manifest.files if name.startswith(f"{FOLDER}/")}
        (self._content / FOLDER).mkdir()
        for name in names:
            linked_or_copied(self._old / name, self._content / name)

    def _publish(self, num_passages: int, sha256: str) -> None:
        self._manifest = publish(
            self._content,
            self._directory,
            describe(self._content, num_passages, sha256),
            base=self._manifest.generation,
        )


@contextmanager
def _successor(directory: Path) -> Iterator[_Successor]:
    with _os_errors_told(directory), updating(directory) as (manifest, content):
        try:
            yield _Successor(directory, manifest, content)
        except FileNotFoundError:
            if read_manifest(directory) == manifest:
                raise
            raise RetrievalError(overtaken(directory)) from None


@contextmanager
def _os_errors_told(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RetrievalError(f"updating index {str(directory)!r} failed: {error}") from error


def _num_kept(parts: Sequence[Part]) -> int:
    """How many parts, from the first, stay as they are when passages are added."""
    number = len(parts) if len(parts) < MOST_PARTS else MOST_PARTS // 2
    while number and parts[number - 1].line_bytes < SMALL_PART:
        number -= 1
    return number


def _rows(store: PassageStore, names: Sequence[str]) -> dict[str, int]:
    """The rows of those ids that the index has."""
    if len(names) > FEW:
        return store.find_all(names)
    found = ((name, store.find(name)) for name in names)
    return {name: row for name, row in found if row is not None}


def _with(deleted: Rows, rows: Sequence[int]) -> Rows:
    return np.union1d(deleted, np.array(rows, dtype=np.int64))
