"""An index directory → any of its passages by id, without a search."""

from __future__ import annotations

from pathlib import Path

from sleuth.retrievers.dense_index.manifest import KIND, read_dense_manifest
from sleuth.retrievers.index_files.manifest import MANIFEST, check_files, read_manifest
from sleuth.retrievers.index_files.passages import PassageReader
from sleuth.retrievers.index_files.publish import kind_of
from sleuth.types import Passage


class PassageLookup:
    """The passages of an index of words or of vectors. Stays on what the index held when it was opened."""

    def __init__(self, path: str | Path) -> None:
        """RetrievalError if the index is missing or damaged."""
        directory = Path(path)
        manifest_file = directory / MANIFEST
        is_dense = manifest_file.is_file() and kind_of(manifest_file) == KIND
        manifest = read_dense_manifest(directory) if is_dense else read_manifest(directory)
        check_files(directory / manifest.generation, manifest)
        self._passages = PassageReader(directory / manifest.generation, manifest.num_passages)

    def get(self, name: str) -> Passage | None:
        """The passage with the id `name`, or None. An id is compared with ids; it is never a path."""
        row = self._passages.find(name)
        return None if row is None else self._passages[row]
