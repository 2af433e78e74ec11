"""Encoder: texts in, vectors out; the inner product of two vectors measures how related the texts are.

Queries and passages may be encoded differently (prefixes, two models), so compare only queries with passages.
"""

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sleuth.types import Passage

_PROBE = Passage(
    "", "Naïve Bayes", "The engineers' 3.14 running cafés hadn't been generalised in Øresund, 東京."
)
_SAME_ENCODER = 0.999
"""Smallest cosine of two probes by one encoder: rounding changes the fourth digit, a lost prefix the second."""


class Encoder(ABC):
    """Turns texts into vectors."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name by which sleuth.encoders.by_name.open_encoder finds this encoder."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts without any prefix, [N, D] float32; the rows have length 1 if `normalised`.

        An empty text may give the zero vector. Raises EngineError if the encoder cannot be loaded.
        """

    @property
    def dimension(self) -> int:
        """D. Raises EngineError if the encoder cannot be loaded, or its vectors cannot be stored."""
        return int(self.encode([""]).shape[1])

    @property
    def normalised(self) -> bool:
        """Whether rows have length 1, so that an inner product is a cosine."""
        return True

    @property
    def remark(self) -> str:
        """Warning for the user of this encoder; "" = none."""
        return ""

    def open(self) -> None:
        """Load the weights now, which the first call does otherwise. Raises EngineError if they do not work."""
        self.encode_queries([_PROBE.text])
        self.encode_passages([_PROBE])

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, [N, D], with their prefix or model; see encode."""
        return self.encode(queries)

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Vectors of titles and texts, [N, D], with their prefix or model; see encode."""
        return self.encode([joined(passage) for passage in passages])


def joined(passage: Passage, joint: str = "\n") -> str:
    """Title and text as one text; the text alone if there is no title."""
    return f"{passage.title}{joint}{passage.text}" if passage.title else passage.text


def probe(encoder: Encoder) -> NDArray[np.float16]:
    """Vectors of one fixed text, as a query and as a passage, [2, D].

    They are stored with an index: other weights, prefixes, pooling or language change them, whatever the
    model is called.
    """
    rows = [encoder.encode_queries([_PROBE.text]), encoder.encode_passages([_PROBE])]
    return np.concatenate(rows).astype(np.float16)


def agree(one: NDArray[np.float16], other: NDArray[np.float16]) -> bool:
    """Whether two probes come from the same encoder, by their cosines."""
    if one.shape != other.shape:
        return False
    a, b = one.astype(np.float32), other.astype(np.float32)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return bool(np.all((a * b).sum(1) >= _SAME_ENCODER * lengths))


def packed(rows: NDArray[np.float16]) -> str:
    """A probe as base64 text for a manifest."""
    return base64.b64encode(rows.astype("<f2").tobytes()).decode()


def unpacked(text: str) -> NDArray[np.float16]:
    """The probe that `packed` wrote, [2, D]. Raises ValueError if the text is damaged."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f2").reshape(2, -1).astype(np.float16)


def fingerprint(rows: NDArray[np.float16]) -> str:
    """Hash of a probe, 16 hex digits; names an encoder in results."""
    return hashlib.sha256(packed(rows).encode()).hexdigest()[:16]
