"""LexicalEncoder: word counts as vectors, so that overlap can be measured without torch or weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sleuth.encoders.base import Encoder
from sleuth.errors import EngineError
from sleuth.text import normalise


@dataclass(frozen=True, slots=True)
class LexicalEncoder(Encoder):
    """Counts of normalised words, scaled to length 1; only rows of one call can be compared."""

    @property
    def name(self) -> str:
        return "lexical"

    @property
    def dimension(self) -> int:
        """Raises EngineError: every call has its own vocabulary."""
        raise EngineError("the lexical encoder's vectors cannot be stored: every call has its own vocabulary")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, number of distinct words]; a text without words is the zero vector."""
        bags = [Counter(normalise(text).split()) for text in texts]
        column = {word: i for i, word in enumerate(sorted(set().union(*bags)))}
        rows = np.zeros((len(texts), max(1, len(column))), dtype=np.float32)
        for row, bag in zip(rows, bags, strict=True):
            for word, count in bag.items():
                row[column[word]] = count
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)
