"""Encoder: texts in, vectors out, so that an inner product says how much two texts have to do with each other.

Queries and passages may be encoded differently (prefixes, two models): what is compared must have
come through the side it belongs to.
"""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sleuth.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PROBE = Passage(
    "", "Naïve Bayes", "The engineers' 3.14 running cafés hadn't been generalised in Øresund, 東京."
)


class Encoder(ABC):
    """Turns texts into vectors."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Texts as they stand, [N, D] float32: rows of length 1 if `normalised`; a text with nothing in
        it may be the zero vector.

        Raises EngineError if the encoder cannot be loaded.
        """

    @property
    @abstractmethod
    def name(self) -> str:
        """What sleuth.encoders.opening.open_encoder opens this encoder by."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """D. Raises EngineError if the encoder cannot be loaded, or rows of two calls cannot be compared."""

    @property
    def normalised(self) -> bool:
        """Whether rows have length 1, so that an inner product is a cosine."""
        return True

    @property
    def remark(self) -> str:
        """What a user should know before relying on it; "" = nothing."""
        return ""

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Queries, with their prefix or model, [N, D]; see encode."""
        return self.encode(queries)

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Title and text, with their prefix or model, [N, D]; see encode."""
        return self.encode([joined(passage) for passage in passages])


def joined(passage: Passage, joint: str = "\n") -> str:
    """Title and text as one text; the text alone if there is no title."""
    return f"{passage.title}{joint}{passage.text}" if passage.title else passage.text


def probe(encoder: Encoder) -> NDArray[np.float16]:
    """What the encoder makes of a fixed text as a query and as a passage, [2, D].

    Kept with the vectors it made: weights, prefixes, pooling and language all show in it, whatever
    folder or name the model is loaded by.
    """
    import numpy as np

    rows = [encoder.encode_queries([_PROBE.text]), encoder.encode_passages([_PROBE])]
    return np.concatenate(rows).astype(np.float16)


def agree(one: NDArray[np.float16], other: NDArray[np.float16]) -> bool:
    """Whether two probes come from the same encoder: cosines of at least 0.999.

    Machines and precisions differ in the fourth digit; a prefix left out, in the second.
    """
    import numpy as np

    if one.shape != other.shape:
        return False
    a, b = one.astype(np.float32), other.astype(np.float32)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return bool(np.all((a * b).sum(1) >= 0.999 * lengths))


def packed(rows: NDArray[np.float16]) -> str:
    """A probe as text, for a manifest."""
    return base64.b64encode(rows.astype("<f2").tobytes()).decode()


def unpacked(text: str) -> NDArray[np.float16]:
    """The probe that `packed` wrote, [2, D]. Raises ValueError if it is not one."""
    import numpy as np

    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f2").reshape(2, -1).astype(np.float16)


def fingerprint(rows: NDArray[np.float16]) -> str:
    """Hash of a probe as it was written, 16 hex digits: names an encoder in results."""
    return hashlib.sha256(packed(rows).encode()).hexdigest()[:16]
