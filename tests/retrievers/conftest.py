"""An encoder whose vectors can be worked out by hand, and indexes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sleuth.encoders.base import Encoder
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.types import Passage


@dataclass(frozen=True)
class Letters(Encoder):
    """How often each of a, b, c, … occurs, scaled to length 1; a text without them is the zero vector."""

    alphabet: str = "abcdefgh"
    query_prefix: str = ""

    @property
    def name(self) -> str:
        return "letters"

    @property
    def dimension(self) -> int:
        return len(self.alphabet)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.count(letter) for letter in self.alphabet] for text in texts])
        rows = counts.reshape(len(texts), self.dimension).astype(np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        return self.encode([self.query_prefix + query for query in queries])


FRUIT = [Passage("p1", "", "a"), Passage("p2", "", "b"), Passage("p3", "b", "a"), Passage("p0", "", "b")]


@pytest.fixture
def letters() -> Encoder:
    """Counts of the first eight letters."""
    return Letters()


@pytest.fixture
def other_letters() -> Encoder:
    """The same with something before every query."""
    return Letters(query_prefix="hh")


@pytest.fixture
def fruit() -> list[Passage]:
    """a · b · b a · b, the last with the first id."""
    return FRUIT


@pytest.fixture
def index(tmp_path: Path, letters: Encoder) -> Path:
    """Words and vectors of the fruit."""
    build_index(FRUIT, tmp_path / "i")
    build_dense(tmp_path / "i", letters)
    return tmp_path / "i"
