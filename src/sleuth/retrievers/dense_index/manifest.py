"""What an index of vectors is made of, in its manifest.json; the counterpart of index_files/manifest.py for words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sleuth.encoders.base import fingerprint, unpacked
from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.engine import Manifest
from sleuth.retrievers.dense_index.passage_files.manifest import MANIFEST, hash_of, read_as
from sleuth.retrievers.dense_index.passage_files.publish import DENSE
from sleuth.retrievers.index_files.manifest import read_manifest

KIND = "sleuth-dense"
FORMAT = 2
"""Raised whenever an older index could no longer be searched rightly."""

Backend = Literal["exact", "ivf-sq8", "pq-sq8"]
"""How vectors are kept and searched: see vectors.py, faiss_index.py and rescoring.py."""


@dataclass(frozen=True, slots=True)
class DenseManifest:
    """An index of vectors in plain values."""

    kind: str
    format: int
    generation: str
    """Name of the directory beside the manifest that holds the files."""
    num_passages: int
    sha256: str
    """Of the passages (content_hash): the same as that of an index of the same passages' words."""
    encoder: str
    """Name that sleuth.encoders.by_name.open_encoder knows."""
    encoder_fingerprint: str
    """Hash of the probe; "-" and the number of tokens to which the encoder cuts texts follow if that was set."""
    encoder_probe: str
    """What the encoder made of a fixed text; see sleuth.encoders.base.probe."""
    dimension: int
    normalised: bool
    backend: Backend
    engine_version: str
    """Of numpy or faiss, which wrote the vectors."""
    nprobe: int
    """Lists looked through for a query, 1 or more; 0 if there are none."""
    candidates: int
    """Passages that are scored again for a query; 0 if none are."""
    recall: float
    """Share of the exact best 10 that a search finds, as measured by the build on a sample of passages."""
    sleuth_version: str
    files: dict[str, int]
    """Relative path → bytes, of every file of the generation."""
    hashes: dict[str, str]
    """Relative path → SHA-256, of the same files."""


def dense_folder(path: Path) -> Path:
    """Where the vectors of an index directory are: the directory itself, or its folder for them."""
    return path / DENSE if (path / DENSE / MANIFEST).is_file() else path


def read_dense_manifest(folder: Path) -> DenseManifest:
    """The manifest of a folder of vectors, or RetrievalError saying what is wrong with it."""
    try:
        manifest = read_as(folder, DenseManifest, KIND, FORMAT)
    except RetrievalError as error:
        try:
            read_manifest(folder, Manifest)
        except RetrievalError:
            raise error from None
        raise RetrievalError(
            f"index {str(folder)!r} holds no vectors; build it again with 'sleuth index SRC -o DIR --dense minilm'"
        ) from None
    if wrong := _wrong_setting(manifest):
        raise RetrievalError(f"{folder / MANIFEST}: damaged ({wrong}); build the index again")
    return manifest


def _wrong_setting(manifest: DenseManifest) -> str:
    """The name of a setting that no build writes; "" if there is none."""
    if manifest.backend != "exact" and manifest.nprobe < 1:
        return "nprobe"
    try:
        marks = unpacked(manifest.encoder_probe)
    except ValueError:
        return "encoder_probe"
    if fingerprint(marks) != manifest.encoder_fingerprint.partition("-")[0]:
        return "encoder_probe"
    return "" if marks.shape[1] == manifest.dimension else "dimension"


def verified(folder: Path, manifest: DenseManifest, name: str) -> Path:
    """The path of a file whose content is what the build wrote; RetrievalError if it is not.

    faiss trusts what it reads: a damaged or forged file of its can overwrite memory, so none is
    given to it unread.
    """
    path = folder / name
    if hash_of(path) != manifest.hashes.get(name):
        raise RetrievalError(f"{path}: is not the file that the build wrote (hash mismatch); refused")
    return path
