"""verify_vectors: every file of an index of vectors held against the hash that the build wrote.

Opening a large one checks sizes, the small files and those of faiss only.
"""

from __future__ import annotations

from pathlib import Path

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.index import OpenDense
from sleuth.retrievers.dense_index.manifest import DenseManifest, dense_folder, read_dense_manifest
from sleuth.retrievers.dense_index.passage_files.manifest import MANIFEST, check_files, check_hashes


def verify_vectors(directory: Path, passages: str = "") -> DenseManifest:
    """The manifest of the vectors in `directory`, all of which are as they were written; else RetrievalError.

    `passages` is the hash of the passages whose vectors they must be, "" for any.
    """
    folder = dense_folder(directory)
    manifest = read_dense_manifest(folder)
    generation = folder / manifest.generation
    check_files(generation, manifest)
    if manifest.files.keys() != manifest.hashes.keys():
        raise RetrievalError(f"{folder / MANIFEST}: damaged (hashes); build the index again")
    check_hashes(generation, manifest.hashes)
    if passages and manifest.sha256 != passages:
        raise RetrievalError(
            f"index {str(directory)!r}: its vectors are of other passages than its words; "
            "build it again with 'sleuth index SRC -o DIR --dense ENCODER'"
        )
    return OpenDense(folder).manifest  # what a search would refuse is not as it was built
