"""CrossEncoder: a model that reads query and passage together and scores how well the passage answers.

More exact and far slower than comparing vectors, so it only re-orders what a search found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from sleuth.checked import Checked, Positive
from sleuth.encoders.loading import loading
from sleuth.errors import EngineError


@dataclass(frozen=True, slots=True)
class CrossEncoder(Checked):
    """A cross-encoder by name, such as "cross-encoder/ms-marco-MiniLM-L6-v2" or "BAAI/bge-reranker-base"."""

    model: str = ""
    """Hub name or folder."""
    max_tokens: Annotated[int, Meta(ge=8)] = 512
    """Tokens of query and passage together; the longer of the two is cut first."""
    batch: Positive = 32
    """Pairs per forward pass."""
    device: str = "cpu"

    def open(self) -> None:
        """Load the weights now, once per process. Raises EngineError if they are missing or not a cross-encoder's."""
        load(self.model, self.device, self.max_tokens)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One number per (query, text), higher is better: the logit, or the difference of two logits.

        Raises EngineError if the model cannot be loaded or a score is not a number.
        """
        model = load(self.model, self.device, self.max_tokens)
        import torch

        scores = model.predict(
            list(pairs), batch_size=self.batch, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )
        if scores.ndim == 2:  # "not relevant" and "relevant"
            scores = scores[:, 1] - scores[:, 0]
        if not np.isfinite(scores).all():
            raise EngineError(f"cross-encoder {self.model!r} returned a score that is not a number")
        return [float(score) for score in scores]


@lru_cache(maxsize=2)
def load(name: str, device: str = "cpu", max_tokens: int = 512) -> Any:
    """The sentence-transformers CrossEncoder in float32, once per process. Raises EngineError as `open` does."""
    if not name:
        raise EngineError("no cross-encoder given: set its model, such as BAAI/bge-reranker-base")
    with loading(name, f"cross-encoder {name!r}", "dense") as options:
        from sentence_transformers import CrossEncoder as Model

        as_float = {"dtype": "float32"}
        model = Model(name, max_length=max_tokens, device=device, model_kwargs=as_float, **options)
    architectures = model.model.config.architectures or [""]
    if not architectures[0].endswith("ForSequenceClassification"):
        # The scoring layer would be random numbers, and the order chance.
        raise EngineError(f"{name!r} is not a trained cross-encoder: its config names {architectures[0]!r}")
    if model.model.config.num_labels > 2:
        raise EngineError(f"{name!r} has {model.model.config.num_labels} classes; a cross-encoder has 1 or 2")
    return model.eval()
