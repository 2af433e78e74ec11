"""verify_index: every file of an index of words held against what the build said of it.

Opening a large index checks sizes and the small files only, since it must be quick.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.index import OpenIndex
from sleuth.retrievers.bm25_index.integrity import check_content
from sleuth.retrievers.index_files.manifest import Manifest, check_files, check_hashes, read_manifest
from sleuth.retrievers.index_files.passages import PASSAGES, PassageStore, part_path, read_parts


def verify_index(directory: Path) -> Manifest:
    """The manifest of the index in `directory`, all of which is as it was written; else RetrievalError."""
    manifest = read_manifest(Path(directory))
    generation = Path(directory) / manifest.generation
    check_files(generation, manifest)
    check_hashes(generation, manifest.hashes)
    check_content(generation, manifest)  # before the engine sees its files, which it trusts
    _check_places(generation)
    return OpenIndex(Path(directory)).manifest


def _check_places(generation: Path) -> None:
    """The passages are right by now; what is kept beside them must lead to them."""
    store, row = PassageStore(generation), 0
    decoder = msgspec.json.Decoder(_Named)
    for number in range(len(read_parts(generation))):
        with part_path(generation, PASSAGES, number).open("rb") as file:
            for line in file:
                if store.id(row) != decoder.decode(line).id or store.line(row) != line:
                    raise RetrievalError(
                        f"{generation}: passage {row} is not where it should be; build the index again"
                    )
                row += 1


class _Named(msgspec.Struct):
    id: str
