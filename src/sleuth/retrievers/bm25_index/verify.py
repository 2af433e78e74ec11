"""verify_index: every file of an index of words held against what the build said of it.

Opening a large index checks sizes and the small files only, since it must be quick.
"""

from __future__ import annotations

from pathlib import Path

from sleuth.retrievers.bm25_index.index import OpenIndex
from sleuth.retrievers.bm25_index.integrity import check_content, check_places
from sleuth.retrievers.index_files.manifest import Manifest, check_files, check_hashes, read_manifest


def verify_index(directory: Path) -> Manifest:
    """The manifest of the index in `directory`, all of which is as it was written; else RetrievalError."""
    manifest = read_manifest(Path(directory))
    generation = Path(directory) / manifest.generation
    check_files(generation, manifest)
    check_hashes(generation, manifest.hashes)
    check_content(generation, manifest)  # before the engine sees its files, which it trusts
    check_places(generation)
    return OpenIndex(Path(directory)).manifest
