"""Writing the inverted index of words with tantivy, in commits, and taking passages out of it again.

What one commit wrote never changes: later ones add files, so that the files of a published index can be
linked into its successor. After a kill the index is as the last commit left it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from sleuth.memory import give_back
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.engine import engine_errors
from sleuth.types import Passage

if TYPE_CHECKING:
    import tantivy

FOLDER = "tantivy"
MOST_THREADS = 4
"""Beyond, reading and checking passages takes longer than indexing them."""
HEAP_BYTES = 240_000_000
"""What all threads together may hold: a whole shard, since a segment that is written early has to be searched on its own."""
_DELETED_AT_A_TIME = 100_000


def num_threads() -> int:
    """Threads that index words: as many as this process has cores, up to MOST_THREADS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_THREADS)


def _schema() -> tantivy.Schema:
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field("title", tokenizer_name=analysis.ANALYSER, index_option="freq")
    builder.add_text_field("text", tokenizer_name=analysis.ANALYSER, index_option="freq")
    # Indexed as well, so that a passage can be taken out by its row without looking at all rows.
    builder.add_unsigned_field("row", fast=True, indexed=True)
    return builder.build()


class IndexWriter:
    """Adds passages to, and takes them out of, the inverted index below a directory, made if it is not there."""

    def __init__(self, directory: Path, threads: int = 0) -> None:
        """threads: 0 = num_threads(). RetrievalError if the engine cannot read what is there."""
        from tantivy import Document, Index

        self._path = directory / FOLDER
        self._document = Document
        with self._told():
            if self._path.exists():
                self._index = Index.open(str(self._path))
            else:
                self._path.mkdir()
                self._index = Index(_schema(), path=str(self._path), reuse=False)
            self._index.register_tokenizer(analysis.ANALYSER, analysis.analyser())
            self._index.config_reader("manual")
            threads = threads or num_threads()
            self._writer = self._index.writer(heap_size=HEAP_BYTES, num_threads=threads)

    @property
    def num_committed(self) -> int:
        """Passages that the last commit left."""
        with self._told():
            self._index.reload()
            count: int = self._index.searcher().num_docs
        return count

    def add(self, row: int, passages: Sequence[Passage]) -> None:
        """Index passages whose rows in the store are `row` and those that follow."""
        make, put, fold = self._document, self._writer.add_document, analysis.folded
        with self._told():
            for number, passage in enumerate(passages, row):
                title = fold(passage.title)
                document = make()
                document.add_unsigned("row", number)
                document.add_text("title", title)
                document.add_text("text", f"{title}\n{fold(passage.text)}")
                put(document)

    def delete(self, rows: Sequence[int]) -> None:
        """Take out the passages with these rows."""
        from tantivy import Query

        with self._told():
            for start in range(0, len(rows), _DELETED_AT_A_TIME):
                some = [int(row) for row in rows[start : start + _DELETED_AT_A_TIME]]
                self._writer.delete_documents_by_query(Query.term_set_query(self._index.schema, "row", some))

    def commit(self) -> None:
        """Write everything through to the disk: a kill from now on costs none of it."""
        with self._told():
            self._writer.commit()
        give_back()  # merging maps files of that size next

    def finish(self) -> None:
        """The same, and leave nothing but what a search needs."""
        with self._told():
            self._writer.commit()
            give_back()  # merging maps files of that size next
            self._writer.garbage_collect_files()
            self._writer.wait_merging_threads()
        remove_leftovers(self._path)

    def close(self) -> None:
        """End the engine's threads, so that nothing writes after a failed build is removed; harmless if done."""
        self.__dict__.pop("_writer", None)
        self.__dict__.pop("_index", None)

    def _told(self) -> AbstractContextManager[None]:
        return engine_errors(str(self._path))

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def remove_leftovers(path: Path) -> None:
    """Remove the engine's locks, and what a kill left of small files that were being replaced."""
    for pattern in (".tantivy-*.lock", ".tmp*"):
        for leftover in path.glob(pattern):
            leftover.unlink()
