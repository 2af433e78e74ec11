"""LexicalEncoder: bags of words, so that overlap can be measured without torch or weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sleuth.encoders.base import Encoder
from sleuth.errors import EngineError
from sleuth.text import normalise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LexicalEncoder(Encoder):
    """Counts of normalised words, scaled to length 1; a cosine is then that of the two word counts.

    The vocabulary is that of the call: rows of different calls cannot be compared.
    """

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return "lexical"

    @property
    def dimension(self) -> int:
        """Always EngineError: every call has its own."""
        raise EngineError(
            "the lexical encoder's vectors cannot be kept: every call has a vocabulary of its own"
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, number of distinct words]; see Encoder."""
        import numpy as np

        bags = [Counter(normalise(text).split()) for text in texts]
        column = {word: i for i, word in enumerate(sorted(set().union(*bags)))}
        rows = np.zeros((len(texts), max(1, len(column))), dtype=np.float32)
        for row, bag in zip(rows, bags, strict=True):
            for word, count in bag.items():
                row[column[word]] = count
        return unit(rows)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a zero row stays zero."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
