"""build_dense: the vectors of an index's passages, published in one step.

Encoding can take hours, so its result goes into one small file per 1,024 rows. The next build of the same
passages by the same encoder uses the files of a killed one; the rest takes minutes and is repeated.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.base import Encoder, fingerprint, packed, probe
from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.bm25_index.build import Progress, os_errors
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.dense_index import faiss_index
from sleuth.retrievers.dense_index.faiss_index import FaissIndex
from sleuth.retrievers.dense_index.index import open_vectors
from sleuth.retrievers.dense_index.manifest import (
    APPROXIMATE,
    EXACT,
    HASHES,
    ROWS,
    Backend,
    DenseManifest,
    read_dense_manifest,
)
from sleuth.retrievers.dense_index.vectors import ExactVectors, blocks, load, save
from sleuth.retrievers.index_files.manifest import check_files
from sleuth.retrievers.index_files.publish import DENSE, ENCODED, publish, staging
from sleuth.text import digest
from sleuth.types import Passage

EXACT_UP_TO = 200_000
"""Largest number of passages that is searched exactly by default, in tens of milliseconds."""
SHARD = 1024  # Rows of the index of words per file of vectors; a kill costs at most one file.
SAMPLE, WORDS, DEPTH = 200, 12, 10
"""Queries to measure recall with, words of a passage in each, and best passages compared."""


@dataclass(frozen=True, slots=True)
class DenseInfo:
    """Result of a build."""

    manifest: DenseManifest
    num_kept: int  # Passages not encoded again, since an older index or a killed build had their vectors.


def build_dense(
    index: Path, encoder: Encoder, *, backend: Backend | None = None, progress: Progress | None = None
) -> DenseInfo:
    """Add the vectors of all passages to the index directory `index`, replacing vectors that are there.

    backend: None = exact up to EXACT_UP_TO passages, else pq-sq8. Until the last step, and if anything fails,
    existing vectors stay. Raises RetrievalError if there are no passages, EngineError if the encoder fails.
    """
    if backend not in (None, *get_args(Backend)):
        raise ConfigError(f"unknown backend {backend!r}; known: {', '.join(get_args(Backend))}")
    index, words = Path(index), Passages(index)
    draft = _draft(words, encoder, backend)
    with os_errors(index), staging(index / DENSE, DenseManifest) as content:
        old = _open_old(index, draft)
        if old and all(getattr(old.manifest, name) == getattr(draft, name) for name in _CURRENT):
            return DenseInfo(old.manifest, draft.num_passages)
        shards = _shards_folder(index / DENSE, draft)
        files, rows, hashes, num_kept = _encode(words, encoder, old, shards, progress)
        save(content / ROWS, rows)
        save(content / HASHES, hashes)
        if draft.backend == "exact":
            _join(files, content / EXACT, draft)
        else:
            faiss_index.build(files, draft, content / APPROXIMATE, old.trained(draft) if old else None)
            draft = tuned(files, content, draft, encoder.encode_queries(sample_queries(words, rows)))
        manifest = publish(content, index / DENSE, draft)
        shutil.rmtree(shards)
    return DenseInfo(manifest, num_kept)


def default_backend(num_passages: int) -> Backend:
    """The backend for this number of vectors."""
    return "exact" if num_passages <= EXACT_UP_TO else "pq-sq8"


def _draft(words: Passages, encoder: Encoder, backend: Backend | None) -> DenseManifest:
    """The manifest before anything is encoded."""
    count, marks = words.manifest.num_passages, probe(encoder)
    if not count:
        raise RetrievalError("there are no passages to make vectors of; add some with 'sleuth index'")
    backend = backend or default_backend(count)
    max_tokens = getattr(encoder, "max_tokens", 0)  # cuts long texts, which the short probe cannot reveal
    library = np if backend == "exact" else faiss_index.faiss_module()
    return DenseManifest(
        num_passages=count,
        sha256=words.manifest.sha256,
        encoder=encoder.name,
        encoder_fingerprint=fingerprint(marks) + (f"-{max_tokens}" if max_tokens else ""),
        encoder_probe=packed(marks),
        dimension=marks.shape[1],
        backend=backend,
        engine_version=f"{library.__name__} {library.__version__}",
    )


_SAME_ENCODER = ("encoder", "encoder_fingerprint", "dimension")
"""Fields that must be equal if old vectors are used again."""
_CURRENT = ("sha256", "backend", "sleuth_version")
"""Further fields that must be equal if there is nothing to do."""


@dataclass(frozen=True)
class _Old:
    """Vectors of an earlier build by the same encoder."""

    manifest: DenseManifest
    folder: Path
    vectors: ExactVectors | FaissIndex
    hashes: NDArray[np.uint64]  # Sorted hashes of their texts.
    places: NDArray[np.int64]  # Place of the vector of each hash.

    def trained(self, draft: DenseManifest) -> Path | None:
        """The faiss index whose training fits a new one: the same coding and number of lists."""
        kinds = [faiss_index.factory(m.backend, m.num_passages, m.dimension) for m in (self.manifest, draft)]
        fits = self.manifest.backend != "exact" and kinds[0] == kinds[1]
        return self.folder / APPROXIMATE if fits else None


def _open_old(index: Path, draft: DenseManifest) -> _Old | None:
    """The published vectors if a build with this manifest can use them."""
    try:
        old = read_dense_manifest(index)
        is_precise = old.backend == "exact" or draft.backend != "exact"
        if not is_precise or any(getattr(old, name) != getattr(draft, name) for name in _SAME_ENCODER):
            return None
        folder = check_files(index / DENSE, old, thorough=True)
        hashes = load(folder / HASHES)
        places = np.argsort(hashes)
        return _Old(old, folder, open_vectors(folder, old)[1], hashes[places], places)
    except RetrievalError:  # missing or damaged: everything is encoded
        return None


def _shards_folder(folder: Path, draft: DenseManifest) -> Path:
    """The folder of encoded vectors that outlives a kill; those of other builds are removed."""
    precision = "float32" if draft.backend == "exact" else "float16"
    shards = folder / f"{ENCODED}{draft.sha256[:16]}-{draft.encoder_fingerprint}-{precision}"
    for other in set(folder.glob(f"{ENCODED}*")) - {shards}:
        shutil.rmtree(other)
    shards.mkdir(exist_ok=True)
    return shards


def _encode(
    words: Passages, encoder: Encoder, old: _Old | None, shards: Path, progress: Progress | None
) -> tuple[list[Path], NDArray[np.int64], NDArray[np.uint64], int]:
    """Write the vectors of all passages; return their files, rows and hashes, and how many were there already."""
    precision = np.dtype(shards.name.rpartition("-")[2])
    files: list[Path] = []
    rows: list[NDArray[np.int64]] = []
    hashes: list[NDArray[np.uint64]] = []
    num_done = num_kept = 0
    for number, batch in enumerate(words.batches(SHARD)):
        if not batch:
            continue
        files.append(shards / f"{number:06}.npy")
        passages = list(batch.values())
        rows.append(np.array(list(batch), dtype=np.int64))
        hashes.append(np.frombuffer(b"".join(map(_hash, passages)), dtype="<u8"))
        num_known = len(batch)
        if not files[-1].exists():
            vectors, num_known = _vectors(passages, hashes[-1], encoder, old)
            save(files[-1], vectors.astype(precision))
        num_kept, num_done = num_kept + num_known, num_done + len(batch)
        if progress:
            progress(num_done)
    return files, np.concatenate(rows), np.concatenate(hashes), num_kept


def _hash(passage: Passage) -> bytes:
    return digest(f"{len(passage.title)} {passage.title}{passage.text}")


def _vectors(
    passages: list[Passage], hashes: NDArray[np.uint64], encoder: Encoder, old: _Old | None
) -> tuple[NDArray[np.float32], int]:
    """The vectors of passages [N, D], and how many of them were known."""
    known = np.isin(hashes, old.hashes) if old else np.zeros(len(hashes), dtype=bool)
    if old is None or not known.any():
        return encoder.encode_passages(passages), 0
    kept = old.vectors.decoded(old.places[np.searchsorted(old.hashes, hashes[known])])
    vectors = np.empty((len(hashes), kept.shape[1]), dtype=np.float32)
    vectors[known] = kept
    if missing := [passage for passage, is_known in zip(passages, known, strict=True) if not is_known]:
        vectors[~known] = encoder.encode_passages(missing)
    return vectors, len(kept)


def _join(files: Sequence[Path], path: Path, draft: DenseManifest) -> None:
    """Write the vectors of many files into one."""
    shape = (draft.num_passages, draft.dimension)
    joined = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=shape)
    for start, block in blocks(files):
        joined[start : start + len(block)] = block
    joined.flush()


def sample_queries(words: Passages, rows: NDArray[np.int64]) -> list[str]:
    """The first words of passages spread evenly over all."""
    places = np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(np.int64)
    chosen = words.by_row(rows[places].tolist()).values()
    return [" ".join((passage.text or passage.title).split()[:WORDS]) for passage in chosen]


def tuned(
    files: Sequence[Path], content: Path, draft: DenseManifest, queries: NDArray[np.float32]
) -> DenseManifest:
    """The manifest with nprobe chosen and recall measured on these queries [Q, D]."""
    depth = min(DEPTH, draft.num_passages)
    truth = faiss_index.exact_places(files, queries, depth)
    _, vectors = open_vectors(content, draft)
    nprobe, recall = faiss_index.tune(
        lambda nprobe: [places for _, places in vectors.search(queries, depth, nprobe)],
        truth,
        faiss_index.num_lists(draft.num_passages),
    )
    return replace(draft, nprobe=nprobe, recall=round(recall, 4))
