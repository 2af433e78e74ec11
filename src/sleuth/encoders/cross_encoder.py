"""CrossEncoder: a model that reads query and passage together and says how well the passage answers.

More exact than comparing vectors and far slower: for re-ordering what a search found. Any sequence
classification model of transformers with one output (or two, of which the second means relevant).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sleuth.encoders.loading import loading
from sleuth.errors import ConfigError, EngineError


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """A cross-encoder by name, such as "cross-encoder/ms-marco-MiniLM-L6-v2" or "BAAI/bge-reranker-base"."""

    model: str = ""
    """Hub name or folder."""
    max_tokens: int = 512
    """Of query and passage together; the passage is cut, the query never unless it is too long alone."""
    batch: int = 32
    """Pairs computed side by side, 1 or more."""
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.batch < 1 or self.max_tokens < 8:
            wrong = f"batch {self.batch}" if self.batch < 1 else f"max_tokens {self.max_tokens}"
            raise ConfigError(f"cross-encoder: {wrong} is too small")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One number per (query, text), higher is better: the logit, or for two outputs their difference.

        Raises EngineError if the model cannot be loaded or its scores are not numbers.
        """
        tokenizer, model = load(self.model, self.device)
        import torch

        # Longest first, so that a batch holds texts of like length and memory is seen to suffice at once.
        order = sorted(range(len(pairs)), key=lambda i: -len(pairs[i][0]) - len(pairs[i][1]))
        scores = [0.0] * len(pairs)
        for start in range(0, len(order), self.batch):
            some = order[start : start + self.batch]
            queries, texts = ([pairs[i][side] for i in some] for side in (0, 1))
            batch = _tokenised(tokenizer, queries, texts, self.max_tokens).to(self.device)
            with torch.inference_mode():
                logits_N_L = model(**batch).logits.float()
            values_N = logits_N_L[:, -1] - (logits_N_L[:, 0] if logits_N_L.shape[1] == 2 else 0)
            if not torch.isfinite(values_N).all():
                raise EngineError(f"cross-encoder {self.model!r} gives scores that are not numbers")
            for i, value in zip(some, values_N.tolist(), strict=True):
                scores[i] = float(value)
        return scores


def _tokenised(tokenizer: Any, queries: list[str], texts: list[str], max_tokens: int) -> Any:
    """A padded batch in which only texts are cut, unless a query alone takes more than half the room."""
    half = max_tokens // 2
    kept = tokenizer(queries, add_special_tokens=False, truncation=True, max_length=half)["input_ids"]
    shown = tokenizer(queries, add_special_tokens=False, truncation=True, max_length=half + 1)["input_ids"]
    short = [
        query if len(a) == len(b) else tokenizer.decode(a)
        for query, a, b in zip(queries, kept, shown, strict=True)
    ]
    return tokenizer(
        short,
        texts,
        padding=True,
        truncation="only_second",
        max_length=max_tokens,
        return_tensors="pt",
    )


@lru_cache(maxsize=2)
def load(name: str, device: str = "cpu") -> tuple[Any, Any]:
    """Tokenizer and model, once per process. Raises EngineError if there is none or it is no cross-encoder."""
    if not name:
        raise EngineError(
            "no cross-encoder given: set its model, such as cross-encoder/ms-marco-MiniLM-L6-v2"
        )
    try:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as error:
        raise EngineError(
            f"cross-encoder {name!r} needs {error.name}: pip install '.[dense]' in the Sleuth checkout"
        ) from error
    with loading(name, f"cross-encoder {name!r}") as options:
        tokenizer = AutoTokenizer.from_pretrained(name, **options)
        model, info = AutoModelForSequenceClassification.from_pretrained(
            name, dtype=torch.float32, output_loading_info=True, **options
        )
    if missing := sorted(info["missing_keys"]):
        # transformers fills these with random numbers, and the order would be chance.
        raise EngineError(f"{name!r} is no trained cross-encoder: it has no weights for {missing[0]}")
    if model.config.num_labels > 2:
        raise EngineError(
            f"{name!r} tells {model.config.num_labels} classes apart; a cross-encoder has 1 or 2"
        )
    return tokenizer, model.to(device).eval()
