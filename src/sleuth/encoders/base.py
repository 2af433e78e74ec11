"""Encoder: texts in, unit vectors out, so that an inner product is a cosine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Encoder(ABC):
    """Turns texts into vectors."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Rows of length 1, [N, D] float32; a text with nothing in it may be the zero vector.

        Raises EngineError if the encoder cannot be loaded.
        """
