"""DenseManifest: the description of an index of vectors, in its manifest.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from sleuth.encoders.base import fingerprint, unpacked
from sleuth.errors import RetrievalError
from sleuth.retrievers.index_files.manifest import MANIFEST, IndexManifest, read_manifest
from sleuth.retrievers.index_files.publish import DENSE, is_published

Backend = Literal["exact", "ivf-sq8", "pq-sq8"]
"""numpy over all vectors; faiss lists of one byte a dimension; faiss lists of half a bit, re-scored at one byte."""

ROWS = "rows.npy"  # File with the row of each vector's passage, ascending, [N] int64.
HASHES = "hashes.npy"
"""File with the hash of each vector's title and text, [N] uint64, by which a later build knows it."""
EXACT = "vectors.npy"  # File of an exact index, [N, D] float32.
APPROXIMATE = "vectors.faiss"  # File of an approximate index.


@dataclass(frozen=True, kw_only=True)
class DenseManifest(IndexManifest):
    """Manifest of an index of vectors; its sha256 is that of the index of words."""

    KIND: ClassVar[str] = "sleuth-dense"
    FORMAT: ClassVar[int] = 3

    encoder: str  # Name for sleuth.encoders.by_name.open_encoder.
    encoder_fingerprint: str  # Hash of the probe, with "-" and the encoder's max_tokens if that is set.
    encoder_probe: str  # Vectors of a fixed text; see sleuth.encoders.base.probe.
    dimension: int
    backend: Backend
    engine_version: str  # Library that searches, with its version.
    nprobe: Annotated[int, Meta(ge=1)] = 1  # Lists probed per query by an approximate index.
    recall: float = 1.0  # Recall@10 against exact search, measured by the build.


def read_dense_manifest(index: Path) -> DenseManifest:
    """The manifest of the vectors in an index directory; RetrievalError if it is missing or damaged."""
    folder = index / DENSE
    if (index / MANIFEST).is_file() and not (folder / MANIFEST).is_file():
        lost = f"the vectors in {str(folder)!r} have lost their {MANIFEST}"
        reason = lost if is_published(folder) else f"index {str(index)!r} holds no vectors"
        raise RetrievalError(
            f"{reason}; build them with 'sleuth index --dense', or search with --retriever bm25"
        )
    manifest = read_manifest(folder, DenseManifest)
    try:
        probe = unpacked(manifest.encoder_probe)
        is_whole = fingerprint(probe) == manifest.encoder_fingerprint.partition("-")[0]
    except ValueError:
        is_whole = False
    if not is_whole or probe.shape[1] != manifest.dimension:
        raise RetrievalError(f"{folder / MANIFEST}: damaged (encoder_probe); build the vectors again")
    return manifest
