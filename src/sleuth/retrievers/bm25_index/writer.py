"""IndexWriter: adds passages to tantivy's files and deletes them again."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from tantivy import Document, Index

from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.engine import engine_errors, open_tantivy, schema
from sleuth.types import Passage

MOST_THREADS = 4
"""Indexing threads. With more, reading and checking passages takes longer than indexing them."""
HEAP_BYTES = 300_000_000
"""Memory for the segments that all threads are writing: the larger a segment, the faster a search."""
COMMIT_CHARACTERS = 280_000_000
"""Characters after which segments are written, since tantivy's queue is bounded in passages, not in bytes."""
_MODULUS = 1 << 256


class IndexWriter:
    """Writes the index in `folder`, which may be empty. Nothing is kept if it is closed before `finish`."""

    def __init__(self, folder: Path, *, num_rows: int = 0, sha256: str = "0") -> None:
        """num_rows, sha256: those of the index that is in the folder."""
        self._path = folder
        self.num_rows = num_rows
        self._sum = int(sha256, 16)
        self._waiting = 0
        self._encode = msgspec.json.Encoder().encode
        with engine_errors(str(self._path)):
            index = open_tantivy(folder) if num_rows else Index(schema(), path=str(folder), reuse=False)
            index.register_tokenizer(analysis.ANALYSER, analysis.analyser())
            # One core reads and checks passages.
            num_threads = max(1, min(num_cores() - 1, MOST_THREADS))
            self._writer = index.writer(heap_size=HEAP_BYTES, num_threads=num_threads)

    @property
    def sha256(self) -> str:
        """Hash of the passages: the sum, modulo 2²⁵⁶, of the SHA-256 of every row added and every row deleted.

        Equal whether passages were added at once or one by one. It detects changes, not forgery.
        """
        return f"{self._sum:064x}"

    def add(self, passages: Iterable[Passage]) -> None:
        """Add passages in the rows that follow."""
        fold = analysis.folded
        with engine_errors(str(self._path)):
            for passage in passages:
                title, stored = fold(passage.title), self._encode(passage)
                document = Document()
                document.add_text("id", passage.id)
                document.add_unsigned("row", self.num_rows)
                document.add_text("title", title)
                document.add_text("text", f"{title}\n{fold(passage.text)}")
                document.add_bytes("passage", stored)
                self._writer.add_document(document)
                self._count(self.num_rows, stored)
                self.num_rows += 1
                self._waiting += len(stored)
            if self._waiting >= COMMIT_CHARACTERS:
                self._writer.commit()
                self._waiting = 0

    def delete(self, rows: Mapping[str, int]) -> None:
        """Delete passages, given as id → row, that were there before this writer was opened."""
        with engine_errors(str(self._path)):
            for name, row in rows.items():
                self._writer.delete_documents_by_term("id", name)
                self._count(row, b"")

    def finish(self) -> None:
        """Write everything to disk and leave only the files that a search needs."""
        with engine_errors(str(self._path)):
            self._writer.commit()
            self._writer.garbage_collect_files()
            self._writer.wait_merging_threads()
        for leftover in self._path.glob(".tantivy-*.lock"):
            leftover.unlink()

    def _count(self, row: int, stored: bytes) -> None:
        digest = hashlib.sha256(row.to_bytes(8, "little") + stored).digest()
        self._sum = (self._sum + int.from_bytes(digest, "little")) % _MODULUS

    def close(self) -> None:
        """End tantivy's threads, so that nothing is written after a failed build was removed."""
        self.__dict__.pop("_writer", None)


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
