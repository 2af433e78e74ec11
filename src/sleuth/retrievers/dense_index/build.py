"""build_dense: passages into an index of their vectors, published in one step.

Passages are stored first, then encoded in order into a file that outlives a killed build: the next
build of the same passages by the same encoder goes on where it ended, since encoding is what takes
hours. The rest (an approximate index, where there are many) takes minutes and is done again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sleuth import __version__
from sleuth.encoders.base import Encoder, fingerprint, packed, probe
from sleuth.errors import BusyError, ConfigError, RetrievalError
from sleuth.lock import FolderLock
from sleuth.retrievers.bm25_index.distinct import Distinct
from sleuth.retrievers.bm25_index.passages import Passages
from sleuth.retrievers.dense_index import faiss_index, rescoring
from sleuth.retrievers.dense_index.index import COARSE, SEARCHERS
from sleuth.retrievers.dense_index.known_vectors import KnownVectors
from sleuth.retrievers.dense_index.manifest import (
    FORMAT,
    KIND,
    Backend,
    DenseManifest,
    read_dense_manifest,
    verified,
)
from sleuth.retrievers.dense_index.passage_files.manifest import check_files, hash_of
from sleuth.retrievers.dense_index.passage_files.passage_writer import PassageWriter
from sleuth.retrievers.dense_index.passage_files.passages import PassageReader
from sleuth.retrievers.dense_index.passage_files.publish import ENCODED, linked_or_copied, publish, staging
from sleuth.retrievers.dense_index.vectors import (
    HALF_VECTORS,
    VECTORS,
    VectorFile,
    Vectors,
    open_vectors,
    search_exact,
)
from sleuth.types import Passage

STEP = 512
"""Passages encoded at a time; also how often progress is told, and half of what a kill may cost."""
EXACT_UP_TO = 200_000
"""Passages; so many are searched exactly in tens of milliseconds."""
CANDIDATES = 800
"""Passages scored again for a query where vectors are compressed."""
SAMPLE = 200
"""Queries by which recall is measured."""
WORDS = 12
"""First words of a passage's text, which make a query of the sample."""
DEPTH = 10
"""Best passages that recall is about."""

Stage = Literal["passages", "vectors", "index"]
Progress = Callable[[Stage, int, int], None]
"""(what is being made, how many are done, of how many; 0 = not known)"""


@dataclass(frozen=True, slots=True)
class DenseInfo:
    """What a build made."""

    directory: Path
    manifest: DenseManifest
    num_resumed: int = 0
    """Passages whose vectors were there: left by a build that was killed, or of the same texts in the old index."""
    num_duplicates: int = 0
    """Passages skipped because an earlier one has their id."""


def build_dense(
    source: Iterable[Passage] | Path,
    directory: Path,
    encoder: Encoder,
    *,
    backend: Backend | None = None,
    progress: Progress | None = None,
) -> DenseInfo:
    """Index the vectors of passages in `directory`, replacing an index of vectors that is there.

    `source` is a stream of passages, or the directory of an index of words, whose passage files are
    then shared and not copied. backend: None = exact up to EXACT_UP_TO, else pq-sq8. Memory: one
    step of passages and, with faiss, the coded vectors. Until the last step, and if anything fails,
    an existing index stays as it was.
    Raises RetrievalError if there are no passages or `directory` cannot be used, EngineError if the
    encoder cannot be loaded, BusyError if another process encodes the same here.
    """
    if backend not in (None, *SEARCHERS):
        raise ConfigError(f"unknown backend {backend!r}; known: {', '.join(SEARCHERS)}")
    tell: Progress = progress or (lambda stage, done, total: None)
    directory = Path(directory)
    marks = probe(encoder)  # an encoder that does not work is told before any passage is read
    try:
        with staging(directory, KIND) as content:
            count, sha256, num_duplicates = _store(source, content, directory, tell)
            draft = _draft(encoder, marks, count, sha256, backend)
            key = f"{sha256[:16]}-{draft.encoder_fingerprint}"
            if current := _current(directory, draft):
                # A build that was killed as it ended left the vectors that it had published.
                _sweep_kept(directory, key)
                return DenseInfo(directory, current, count, num_duplicates)
            with _kept(directory, key, draft) as file:
                num_resumed = _encode(file, content, directory, encoder, draft, tell)
                manifest = publish(content, directory, _index(file, content, encoder, draft, tell))
            _sweep_kept(directory)
    except OSError as error:
        raise RetrievalError(f"building index {str(directory)!r} failed: {error}") from error
    return DenseInfo(directory, manifest, num_resumed, num_duplicates)


def default_backend(num_passages: int) -> Backend:
    """How so many vectors are kept unless told otherwise."""
    return "exact" if num_passages <= EXACT_UP_TO else "pq-sq8"


def _store(
    source: Iterable[Passage] | Path, content: Path, directory: Path, tell: Progress
) -> tuple[int, str, int]:
    """Put the passages into `content`: (how many, their hash, duplicates left out)."""
    if isinstance(source, Path):
        return *_share(source, content), 0
    distinct = Distinct(source)
    with PassageWriter(content) as store:
        for chunk in distinct:
            store.add(chunk)
            tell("passages", distinct.num_read, 0)
        if not store.count:
            raise RetrievalError(f"no passages to index for {str(directory)!r}")
        return store.count, store.finish(), distinct.num_duplicates


def _share(index: Path, content: Path) -> tuple[int, str]:
    """Copy the passages of an index of words; returns how many, and its hash of them."""
    passages = Passages(index)
    if not passages.manifest.num_passages:
        raise RetrievalError(f"index {str(index)!r} holds no passages")
    with PassageWriter(content) as store:
        for batch in passages.batches():
            store.add(list(batch.values()))
        store.finish()
    return passages.manifest.num_passages, passages.manifest.sha256


def _draft(
    encoder: Encoder, marks: NDArray[np.float16], count: int, sha256: str, backend: Backend | None
) -> DenseManifest:
    """The manifest as far as it is known before any passage is encoded."""
    backend = backend or default_backend(count)
    return DenseManifest(
        kind=KIND,
        format=FORMAT,
        generation="",
        num_passages=count,
        sha256=sha256,
        encoder=encoder.name,
        encoder_fingerprint=_fingerprint(encoder, marks),
        encoder_probe=packed(marks),
        dimension=marks.shape[1],
        normalised=encoder.normalised,
        backend=backend,
        engine_version=f"numpy {np.__version__}" if backend == "exact" else faiss_index.faiss_version(),
        nprobe=0,
        candidates=CANDIDATES if backend == "pq-sq8" else 0,
        recall=1.0,
        sleuth_version=__version__,
        files={},
        hashes={},
    )


def _fingerprint(encoder: Encoder, marks: NDArray[np.float16]) -> str:
    """Of what the encoder makes of a short text, and of where it was told to cut long ones, which that cannot show."""
    max_tokens = getattr(encoder, "max_tokens", 0)
    return f"{fingerprint(marks)}-{max_tokens}" if max_tokens else fingerprint(marks)


def _current(directory: Path, draft: DenseManifest) -> DenseManifest | None:
    """The manifest of the index that is there, if it is what `draft` would become and undamaged."""
    try:
        found = read_dense_manifest(directory)
        check_files(directory / found.generation, found)
        for name in found.hashes:
            verified(directory / found.generation, found, name)
    except RetrievalError:
        return None
    same = ("sha256", "encoder", "encoder_fingerprint", "normalised", "backend", "sleuth_version")
    alike = all(getattr(found, name) == getattr(draft, name) for name in same)
    return found if alike and found.files.keys() == found.hashes.keys() else None


@contextmanager
def _kept(directory: Path, key: str, draft: DenseManifest) -> Iterator[Path]:
    """The file of vectors that an unfinished build leaves for the next one; held by one process at a time."""
    folder = directory / (ENCODED + key)
    folder.mkdir(exist_ok=True)
    lock = FolderLock(folder)
    try:
        # At half precision where they are only read to be compressed.
        path = folder / (VECTORS if draft.backend == "exact" else HALF_VECTORS)
        _set_apart(path)
        yield path
    finally:
        lock.release()


def _set_apart(path: Path) -> None:
    """Make a kept file, which is about to be cut and added to, a copy if a published index has the same file.

    So it is after a build that was killed between publishing its vectors and removing what it kept.
    """
    if path.exists() and path.stat().st_nlink > 1:
        copy = path.with_name(f"{path.name}.copy")
        shutil.copyfile(path, copy)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
        copy.replace(path)


def _sweep_kept(directory: Path, key: str = "*") -> None:
    """Remove vectors that finished or given-up builds left, and no process is adding to; `key`: of such builds only."""
    for folder in directory.glob(ENCODED + key):
        try:
            lock = FolderLock(folder)
        except BusyError:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _encode(
    path: Path, content: Path, directory: Path, encoder: Encoder, draft: DenseManifest, tell: Progress
) -> int:
    """Write the vectors of all passages; returns how many were there already."""
    reader = PassageReader(content, draft.num_passages)
    known = KnownVectors(directory, draft)
    file = VectorFile(path, draft.dimension)
    try:
        resumed = min(file.resume(STEP), draft.num_passages)
        for start in range(resumed, draft.num_passages, STEP):
            end = min(start + STEP, draft.num_passages)
            tell("vectors", start, draft.num_passages)
            file.add(known.encode(encoder, [reader[row] for row in range(start, end)]))
    finally:
        file.close()
    tell("vectors", draft.num_passages, draft.num_passages)
    return resumed + known.num_taken


def _index(
    path: Path, content: Path, encoder: Encoder, draft: DenseManifest, tell: Progress
) -> DenseManifest:
    """Put what searches read into `content`; returns the manifest of it, with its recall measured."""
    vectors = open_vectors(path, draft.num_passages, draft.dimension)
    if draft.backend == "exact":
        linked_or_copied(path, content / VECTORS)
        return _with_files(draft, content)
    coding = "SQ8"
    if draft.backend == "pq-sq8":
        coding = faiss_index.compressed(draft.dimension)
        rescoring.write_codes(vectors, content)
    tell("index", 0, draft.num_passages)
    faiss_index.build(vectors, coding, content / COARSE, lambda done: tell("index", done, draft.num_passages))
    manifest = _with_files(draft, content)
    nprobe, recall = _tuned(vectors, content, encoder, manifest)
    return replace(manifest, nprobe=nprobe, recall=round(recall, 4))


def _tuned(vectors: Vectors, content: Path, encoder: Encoder, manifest: DenseManifest) -> tuple[int, float]:
    """(nprobe, recall@10), measured with the first words of passages as queries."""
    queries = encoder.encode_queries(sample_queries(PassageReader(content, manifest.num_passages), manifest))
    depth = min(DEPTH, manifest.num_passages)
    truth = [top(found, depth) for found in search_exact(vectors, queries, depth)]
    find = SEARCHERS[manifest.backend](content, manifest)
    return faiss_index.tune(
        lambda some, nprobe: [top(found, depth) for found in find(some, depth, nprobe)],
        queries,
        truth,
        faiss_index.num_lists(manifest.num_passages),
    )


def sample_queries(reader: PassageReader, manifest: DenseManifest) -> list[str]:
    """The first words of passages spread evenly over all."""
    count = manifest.num_passages
    chosen = [reader[int(row)] for row in np.linspace(0, count - 1, min(SAMPLE, count))]
    return [" ".join((passage.text or passage.title).split()[:WORDS]) for passage in chosen]


def top(found: tuple[NDArray[np.float32], NDArray[np.int64]], k: int) -> NDArray[np.int64]:
    """The k best rows of one query."""
    scores, rows = found
    return rows[np.lexsort((rows, -scores))[:k]]


def _with_files(manifest: DenseManifest, content: Path) -> DenseManifest:
    found = sorted(path for path in content.rglob("*") if path.is_file())
    return replace(
        manifest,
        files={str(path.relative_to(content)): path.stat().st_size for path in found},
        hashes={str(path.relative_to(content)): hash_of(path) for path in found},
    )
