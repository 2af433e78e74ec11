"""build_index: a stream of passages into an index directory, in bounded memory, published in one step.

A build that is killed leaves its whole shards to the next one of the same passages: see shards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sleuth import __version__
from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.best_scores import BEST_SCORES, write_best_scores
from sleuth.retrievers.bm25_index.index import ENGINE, LOOK_UP_FROM, PRUNE_FROM, engine_version
from sleuth.retrievers.bm25_index.index_writer import FOLDER
from sleuth.retrievers.bm25_index.shards import ShardedBuild
from sleuth.retrievers.index_files.manifest import FORMAT, KIND, Manifest, hash_of
from sleuth.retrievers.index_files.passages import BLOCKS, DELETED, PARTS
from sleuth.retrievers.index_files.publish import publish, staging
from sleuth.types import Passage

CHUNK = 4096
"""Most passages taken at a time; also how often progress is told."""
CHUNK_CHARACTERS = 8_000_000
"""Most characters taken at a time, but for a single passage that has more."""

NAMED_DUPLICATES = 10
"""How many skipped ids IndexInfo names."""

_LISTS = (PARTS, BLOCKS, DELETED, BEST_SCORES, f"{FOLDER}/meta.json")
"""Small files that say what the others are: read at every opening, so their hash can be checked there."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What a build made."""

    directory: Path
    num_passages: int
    sha256: str
    """Of all passages in order (content_hash); what `identity()` of the retriever names."""
    num_duplicates: int = 0
    """Passages skipped because an earlier one has their id."""
    duplicates: tuple[str, ...] = ()
    """The first few ids that came again."""
    num_resumed: int = 0
    """Passages that were indexed already, by a build that was killed."""


def build_index(
    passages: Iterable[Passage],
    directory: Path,
    *,
    progress: Callable[[int], None] | None = None,
    base: str = "",
) -> IndexInfo:
    """Index `passages` for BM25 in `directory`, replacing an index that is there.

    `progress` is called with the number of passages taken so far. The first passage of an id is
    kept, later ones are skipped and counted. Memory stays below 0.6 GB for millions of passages.
    Until the last step, and if anything fails, an existing index stays as it was; the next build
    goes on with the whole shards of one that failed, as far as its passages are the same.
    base: the generation that is to be replaced, and no other; "" = whatever is there.
    Raises RetrievalError if there are no passages, one is malformed, or `directory` cannot be used.
    """
    directory = Path(directory)
    try:
        with staging(directory, made_by=_settings()) as content:
            return _build(passages, content, directory, progress, base)
    except OSError as error:
        raise RetrievalError(f"building index {str(directory)!r} failed: {error}") from error


def _build(
    passages: Iterable[Passage],
    content: Path,
    directory: Path,
    progress: Callable[[int], None] | None,
    base: str,
) -> IndexInfo:
    distinct = Distinct(passages)
    with ShardedBuild(content) as made:
        for chunk in distinct:
            made.add(chunk)
            if progress:
                progress(distinct.num_taken)
        if not made.count:
            raise RetrievalError(f"no passages to index for {str(directory)!r}")
        sha256 = made.finish()
        num_passages, num_resumed = made.count, made.num_resumed
    if num_passages >= PRUNE_FROM:
        write_best_scores(content, LOOK_UP_FROM)
    publish(content, directory, describe(content, num_passages, sha256), base=base)
    return IndexInfo(
        directory, num_passages, sha256, distinct.num_duplicates, tuple(distinct.duplicates), num_resumed
    )


def _settings() -> str:
    """On what, beside the passages, the files of a build depend."""
    return f"{KIND} {FORMAT} {ENGINE} {engine_version()} {analysis.ANALYSER} {analysis.fingerprint()} {__version__}"


class Distinct:
    """Those of a stream of passages whose id is new, checked, some at a time."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._chunks = checked_chunks(passages)
        self._seen = SeenIds()
        self.num_taken = 0
        """Passages of the stream so far, repeated ones included."""
        self.num_duplicates = 0
        self.duplicates: list[str] = []
        """The first few ids that came again."""

    def __iter__(self) -> Iterator[list[Passage]]:
        for chunk in self._chunks:
            are_new = self._seen.add([passage.id for passage in chunk])
            self.num_taken += len(chunk)
            if not all(are_new):
                again = [p.id for p, is_new in zip(chunk, are_new, strict=True) if not is_new]
                self.num_duplicates += len(again)
                self.duplicates += again[: NAMED_DUPLICATES - len(self.duplicates)]
                chunk = [p for p, is_new in zip(chunk, are_new, strict=True) if is_new]
            yield chunk


def checked_chunks(passages: Iterable[Passage], first: int = 0) -> Iterator[list[Passage]]:
    """Lists of at most CHUNK passages and some CHUNK_CHARACTERS, checked and with text that can be stored."""
    chunk: list[Passage] = []
    size = 0
    for number, passage in enumerate(passages, first):
        ready = _checked(passage, number)
        chunk.append(ready)
        size += len(ready.title) + len(ready.text)
        if len(chunk) == CHUNK or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _checked(passage: Passage, number: int) -> Passage:
    identity, title, text = passage.id, passage.title, passage.text
    try:
        if identity.isascii() and title.isascii() and text.isascii() and identity:
            return passage
    except AttributeError:  # not text: told below
        pass
    for name, value in (("id", identity), ("title", title), ("text", text)):
        if not isinstance(value, str):
            raise RetrievalError(f"passage {number}: {name} must be text, not {value!r}")
    if not identity:
        raise RetrievalError(f"passage {number} has no id, so nothing could cite it")
    return Passage(*(analysis.valid(part) for part in (identity, title, text)))


def describe(content: Path, num_passages: int, sha256: str) -> Manifest:
    """The manifest of an index whose files are below `content`."""
    files = {str(p.relative_to(content)): p.stat().st_size for p in sorted(content.rglob("*")) if p.is_file()}
    return Manifest(
        kind=KIND,
        format=FORMAT,
        generation="",
        num_passages=num_passages,
        sha256=sha256,
        engine=ENGINE,
        engine_version=engine_version(),
        analyser=analysis.ANALYSER,
        analyser_fingerprint=analysis.fingerprint(),
        sleuth_version=__version__,
        files=files,
        hashes={name: hash_of(content / name) for name in files if name in _LISTS},
    )


class SeenIds:
    """Which ids came before, at 8 bytes each (24 for a moment while runs are merged).

    Keeps 64-bit hashes in sorted runs, each at least as long as all later ones together. Two
    different ids share a hash with probability n²/2⁶⁵: 10⁻⁵ for the 21 million passages of Wikipedia.
    """

    def __init__(self) -> None:
        self._runs: list[npt.NDArray[np.uint64]] = []

    def add(self, ids: Sequence[str]) -> list[bool]:
        """For each id in turn, whether it is new."""
        hashes = np.array([_hash(i) for i in ids], dtype=np.uint64)
        _, first = np.unique(hashes, return_index=True)
        is_new = np.zeros(len(hashes), dtype=bool)
        is_new[first] = True
        is_new &= ~self._holds(hashes)
        if is_new.any():
            self._append(np.sort(hashes[is_new]))
        return [bool(value) for value in is_new]

    def known(self, ids: Sequence[str]) -> list[bool]:
        """For each id, whether it was added before; it is not added."""
        return [bool(value) for value in self._holds(np.array([_hash(i) for i in ids], dtype=np.uint64))]

    def _holds(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        known = np.zeros(len(hashes), dtype=bool)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            known |= run[places] == hashes
        return known

    def _append(self, run: npt.NDArray[np.uint64]) -> None:
        while self._runs and len(self._runs[-1]) <= len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
