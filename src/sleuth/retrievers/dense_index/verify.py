"""verify_vectors: every file of an index of vectors held against the hash that the build wrote.

Opening one checks sizes only, except for faiss files: those are never read unverified.
"""

from __future__ import annotations

from pathlib import Path

from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.manifest import DenseManifest, dense_folder, read_dense_manifest
from sleuth.retrievers.index_files.manifest import check_hashes


def verify_vectors(directory: Path, passages: str = "") -> DenseManifest:
    """The manifest of the vectors in `directory`, all of which are as they were written; else RetrievalError.

    `passages` is the hash of the passages whose vectors they must be, "" for any.
    """
    folder = dense_folder(directory)
    manifest = read_dense_manifest(folder)
    check_hashes(folder / manifest.generation, manifest.hashes)
    if passages and manifest.sha256 != passages:
        raise RetrievalError(
            f"index {str(directory)!r}: its vectors are of other passages than its words; "
            "build it again with 'sleuth index SRC -o DIR --dense ENCODER'"
        )
    return manifest
