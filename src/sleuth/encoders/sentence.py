"""SentenceEncoder: any encoder that sentence-transformers loads, with its prefixes and its pooling.

Pooling and normalisation come with the model's files; prefixes from the table in families.py unless
they are given here. No code that comes with a model is ever run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sleuth.encoders.base import Encoder, joined
from sleuth.encoders.families import Family, family_of, full_name
from sleuth.encoders.loading import loading
from sleuth.errors import ConfigError, EngineError
from sleuth.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NO_FAMILY = Family("", "")


@dataclass(frozen=True, slots=True)
class SentenceEncoder(Encoder):
    """A model from the Hugging Face hub or a folder. None = as its family in families.py, else as it stands."""

    model: str = ""
    """Hub name, family name such as "e5-base-v2", or folder."""
    query_prefix: str | None = None
    passage_prefix: str | None = None
    query_model: str | None = None
    """Name of a model of its own for queries (DPR); "" = the same for both."""
    joint: str | None = None
    """Between a passage's title and text."""
    normalise: bool | None = None
    """Scale every vector to length 1."""
    max_tokens: int = 0
    """Longer texts are cut; 0 = the model's own limit."""
    batch: int = 64
    """Texts computed side by side, 1 or more."""
    device: str = ""
    """ "cpu", "cuda", …; "" = an accelerator if there is one."""

    def __post_init__(self) -> None:
        if self.batch < 1 or self.max_tokens < 0:
            wrong = f"batch {self.batch}" if self.batch < 1 else f"max_tokens {self.max_tokens}"
            raise ConfigError(f"encoder: {wrong} is too small")

    @property
    def name(self) -> str:
        """The model's full name."""
        return full_name(self.model)

    @property
    def dimension(self) -> int:
        """Loads the model."""
        return int(self.encode([""]).shape[1])

    @property
    def normalised(self) -> bool:
        """As set, else as the family is used; an unknown model is compared by cosine."""
        return self._family.normalised if self.normalise is None else self.normalise

    @property
    def remark(self) -> str:
        """Says that no prefixes are known, if none are known and none are given."""
        if family_of(self.model) or self.query_prefix is not None or self.passage_prefix is not None:
            return ""
        return f"{self.model}: no prefixes known for this encoder; queries and passages are encoded without"

    @property
    def _family(self) -> Family:
        return family_of(self.model) or _NO_FAMILY

    @property
    def _query_name(self) -> str:
        if self.query_model is not None:
            return full_name(self.query_model or self.model)
        found, replacement = self._family.query_model
        return self.name.replace(found, replacement) if found else self.name

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, D], without any prefix; see Encoder."""
        return self._vectors(self.name, texts)

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """[N, D], with the query prefix, by the query model."""
        prefix = self._family.query_prefix if self.query_prefix is None else self.query_prefix
        return self._vectors(self._query_name, [prefix + query for query in queries])

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """[N, D], with the passage prefix before title and text."""
        prefix = self._family.passage_prefix if self.passage_prefix is None else self.passage_prefix
        joint = self._family.joint if self.joint is None else self.joint
        return self._vectors(self.name, [prefix + joined(passage, joint) for passage in passages])

    def _vectors(self, name: str, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        model = load(name, self.device, self.max_tokens)
        # One text too many, so that nothing to encode has a width as well.
        rows = model.encode(
            [*texts, ""],
            prompt="",  # a prompt in the model's own settings would come on top of our prefix
            batch_size=self.batch,
            normalize_embeddings=self.normalised,
            convert_to_numpy=True,
            show_progress_bar=False,
        )[:-1]
        if not np.isfinite(rows).all():
            raise EngineError(f"encoder {name!r} made vectors that are not numbers")
        return np.asarray(rows, dtype=np.float32)


@lru_cache(maxsize=4)
def load(name: str, device: str = "", max_tokens: int = 0) -> Any:
    """The sentence-transformers model, once per process. Raises EngineError if it cannot be had."""
    if not name:
        raise EngineError("no encoder given: name a model or a folder")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EngineError(
            f"encoder {name!r} needs {error.name}: pip install '.[dense]' in the Sleuth checkout"
        ) from error
    with loading(name, f"encoder {name!r}") as options:
        model = SentenceTransformer(name, device=device or None, **options)
    if max_tokens:
        model.max_seq_length = max_tokens
    return model.eval()
