"""SentenceEncoder: any encoder that sentence-transformers loads, with the prefixes of its family.

Pooling and normalisation come with the model's files. Code in a model's repository is never run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.checked import Checked, NonNegative, Positive
from sleuth.encoders.base import Encoder, joined
from sleuth.encoders.families import Family, family_of, full_name
from sleuth.encoders.loading import loading
from sleuth.errors import EngineError
from sleuth.types import Passage


@dataclass(frozen=True, slots=True)
class SentenceEncoder(Checked, Encoder):
    """A model from the Hugging Face hub or a folder. None = the value of its family in families.py."""

    model: str = ""
    """Hub name, family name such as "e5-base-v2", or folder."""
    query_prefix: str | None = None
    passage_prefix: str | None = None
    query_model: str | None = None
    """Second model for queries (DPR); "" = one model for both."""
    normalise: bool | None = None
    """Whether every vector is scaled to length 1."""
    max_tokens: NonNegative = 0
    """Longer texts are cut; 0 = the model's own limit."""
    batch: Positive = 64
    """Texts per forward pass."""
    device: str = ""
    """ "cpu", "cuda", …; "" = an accelerator if there is one."""

    @property
    def name(self) -> str:
        return full_name(self.model)

    @property
    def normalised(self) -> bool:
        """`normalise` if set, else as the family; an unknown model is compared by cosine."""
        return self._family.normalised if self.normalise is None else self.normalise

    @property
    def remark(self) -> str:
        if family_of(self.model) or self.query_prefix is not None or self.passage_prefix is not None:
            return ""
        return f"{self.model}: no prefixes known for this encoder; queries and passages are encoded without"

    @property
    def _family(self) -> Family:
        return family_of(self.model) or Family("", "")

    @property
    def _query_name(self) -> str:
        if self.query_model is not None:
            return full_name(self.query_model or self.model)
        old, new = self._family.query_model
        return self.name.replace(old, new) if old else self.name

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._vectors(self.name, texts)

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        prefix = self._family.query_prefix if self.query_prefix is None else self.query_prefix
        return self._vectors(self._query_name, [prefix + query for query in queries])

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        prefix = self._family.passage_prefix if self.passage_prefix is None else self.passage_prefix
        return self._vectors(self.name, [prefix + joined(p, self._family.joint) for p in passages])

    def _vectors(self, name: str, texts: Sequence[str]) -> NDArray[np.float32]:
        # One extra text, so that an empty list has a width as well.
        model = load(name, self.device, self.max_tokens)
        rows = model.encode(
            [*texts, ""],
            prompt="",  # a prompt in the model's own settings would be added to our prefix
            batch_size=self.batch,
            normalize_embeddings=self.normalised,
            show_progress_bar=False,
        )[:-1]
        if not np.isfinite(rows).all():
            raise EngineError(f"encoder {name!r} returned vectors with NaN or infinity")
        return np.asarray(rows, dtype=np.float32)


@lru_cache(maxsize=4)
def load(name: str, device: str = "", max_tokens: int = 0) -> Any:
    """The SentenceTransformer in eval mode, once per process. Raises EngineError if it cannot be loaded."""
    if not name:
        raise EngineError("no encoder given: name a model or a folder")
    with loading(name, f"encoder {name!r}", "dense") as options:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(name, device=device or None, **options)
    if max_tokens:
        model.max_seq_length = max_tokens
    return model.eval()
