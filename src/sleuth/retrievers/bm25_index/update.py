"""Adding passages to an index and deleting them.

tantivy's files never change once written, so they are linked into a new generation that gets the
change and is published like a build. A process that has the index open keeps the
old one; a kill changes nothing.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.build import IndexInfo, Progress, build_index, describe, os_errors
from sleuth.retrievers.bm25_index.distinct import NAMED, Distinct
from sleuth.retrievers.bm25_index.engine import Manifest
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.bm25_index.writer import IndexWriter
from sleuth.retrievers.index_files.manifest import check_files, read_manifest
from sleuth.retrievers.index_files.publish import publish, staging
from sleuth.types import Passage


def add_passages(
    passages: Iterable[Passage], directory: Path, *, replace: bool = False, progress: Progress | None = None
) -> IndexInfo:
    """Add `passages` to the index in `directory`; one whose id is there already is left out and counted.

    replace: it replaces the one that is there instead. Of new passages with the same id the first counts.
    Raises RetrievalError if there is no index or a passage is malformed; the index is then as it was.
    """
    with _update(Path(directory)) as update:
        distinct = Distinct(passages)
        known: list[str] = []
        for batch in distinct:
            rows = update.old.rows_by_id([passage.id for passage in batch])
            known += rows
            if replace:
                update.delete(rows)
            update.add([passage for passage in batch if replace or passage.id not in rows])
            if progress:
                progress(distinct.num_read)
        left_out = [] if replace else known
        return update.finish(
            num_replaced=len(known) - len(left_out),
            num_duplicates=distinct.num_duplicates + len(left_out),
            duplicates=(*left_out, *distinct.duplicates)[:NAMED],
        )


def delete_passages(ids: Iterable[str], directory: Path) -> IndexInfo:
    """Delete the passages with these ids from the index in `directory`.

    Until tantivy merges their segment, or until `compact_index`, their text stays in the files and
    their words in the counts by which words are weighted. Raises RetrievalError if there is no index.
    """
    if isinstance(ids, str):
        raise RetrievalError(f"ids must be a list of texts, not the text {ids[:80]!r}")
    wanted = list(dict.fromkeys(ids))
    for name in wanted:
        if not isinstance(name, str):
            raise RetrievalError(f"an id must be text, not {name!r}")
    with _update(Path(directory)) as update:
        rows = update.old.rows_by_id(wanted)
        update.delete(rows)
        unknown = tuple(name for name in wanted if name not in rows)
        return update.finish(num_deleted=len(rows), unknown=unknown)


def compact_index(directory: Path, *, progress: Progress | None = None) -> IndexInfo:
    """Build the index in `directory` again from its own passages, which removes what was deleted for good.

    Raises RetrievalError if there is no index, it is damaged, or no passage is left.
    """
    directory = Path(directory)
    read_manifest(directory, Manifest)
    return build_index(_living(directory), directory, progress=progress)


def _living(directory: Path) -> Iterator[Passage]:
    # Read lazily, hence after build_index has locked the directory.
    passages = Passages(directory)
    check_files(directory, passages.manifest, thorough=True)
    for batch in passages.batches():
        yield from batch.values()


@contextmanager
def _update(directory: Path) -> Iterator["_Update"]:
    read_manifest(directory, Manifest)
    with os_errors(directory), staging(directory, Manifest) as content:
        update = _Update(directory, content)
        try:
            yield update
        finally:
            if update.writer:
                update.writer.close()


class _Update:
    """One change to an index, prepared in the staging folder `content`."""

    def __init__(self, directory: Path, content: Path) -> None:
        self.old = Passages(directory)
        self._directory, self._content = directory, content
        self.writer: IndexWriter | None = None
        """Opened by the first change."""
        self._num_added = self._num_deleted = 0

    def add(self, passages: Sequence[Passage]) -> None:
        if passages:
            self._open().add(passages)
            self._num_added += len(passages)

    def delete(self, rows: Mapping[str, int]) -> None:
        if rows:
            self._open().delete(rows)
            self._num_deleted += len(rows)

    def finish(self, **figures: Any) -> IndexInfo:
        """Publish the change, if there is one."""
        manifest = self.old.manifest
        if self.writer:
            self.writer.finish()
            unchanged = {name: seen for name, seen in manifest.files.items() if not name.endswith(".json")}
            num_passages = manifest.num_passages + self._num_added - self._num_deleted
            made = describe(self.writer, num_passages)
            manifest = publish(self._content, self._directory, made, unchanged=unchanged)
        figures["num_added"] = self._num_added
        return IndexInfo(manifest.num_passages, manifest.sha256, **figures)

    def _open(self) -> IndexWriter:
        if not self.writer:
            old = self.old.manifest
            for name in old.files:
                _link(self._directory / old.generation / name, self._content / name)
            self.writer = IndexWriter(self._content, num_rows=old.num_rows, sha256=old.sha256)
        return self.writer


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where there are no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
