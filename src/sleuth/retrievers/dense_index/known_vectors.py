"""Vectors of an index that is about to be replaced, by what was encoded: an unchanged text is not encoded again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.dense_index.manifest import DenseManifest, read_dense_manifest, verified
from sleuth.retrievers.dense_index.passage_files.passages import PassageReader
from sleuth.retrievers.dense_index.vectors import VECTORS, Vectors, open_vectors
from sleuth.types import Passage


class KnownVectors:
    """Those of the index in `directory` if it is undamaged, exact, and by the encoder of `draft`; else none."""

    def __init__(self, directory: Path, draft: DenseManifest) -> None:
        self._dimension = draft.dimension
        self._rows: dict[bytes, int] = {}
        self._vectors: Vectors | None = None
        self.num_taken = 0
        """Passages whose vector was taken over so far."""
        try:
            self._read(directory, draft)
        except RetrievalError:  # there is none, or none that could be relied on: everything is encoded
            self._rows = {}

    def encode(self, encoder: Encoder, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """The vectors of passages, [N, D]; the encoder is asked only for what is not known."""
        known = [self._rows.get(_key(passage)) for passage in passages] if self._rows else []
        taken = [row for row in known if row is not None]
        if self._vectors is None or not taken:
            return encoder.encode_passages(passages)
        rows = np.empty((len(passages), self._dimension), dtype=np.float32)
        is_known = np.array([row is not None for row in known])
        rows[is_known] = self._vectors[taken]
        if missing := [passage for passage, row in zip(passages, known, strict=True) if row is None]:
            rows[~is_known] = encoder.encode_passages(missing)
        self.num_taken += len(taken)
        return rows

    def _read(self, directory: Path, draft: DenseManifest) -> None:
        found = read_dense_manifest(directory)
        same = ("encoder", "encoder_fingerprint", "dimension", "normalised")
        if found.backend != "exact" or any(getattr(found, name) != getattr(draft, name) for name in same):
            return
        folder = directory / found.generation
        for name in {VECTORS, *found.files}:  # a text that was damaged would be given the vector of another
            verified(folder, found, name)
        self._vectors = open_vectors(folder / VECTORS, found.num_passages, found.dimension)
        reader = PassageReader(folder, found.num_passages)
        self._rows = {_key(reader[row]): row for row in range(found.num_passages)}


def _key(passage: Passage) -> bytes:
    """Of title and text, which decide a vector; the id does not."""
    text = f"{len(passage.title)} {passage.title}{passage.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
