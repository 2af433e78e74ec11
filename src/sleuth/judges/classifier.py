"""Classifier: a Hugging Face sequence-pair classifier, loaded once; pairs in, label probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sleuth.engines.models import load_tokenizer, loading, pick_device
from sleuth.errors import JudgeError


class Classifier:
    """A trained pair classifier and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, name: str, device: str = "auto") -> Classifier:
        """From a local folder or hub name, in float32. Raises EngineError or JudgeError in one line."""
        from transformers import AutoModelForSequenceClassification

        target = pick_device(device)
        tokenizer = load_tokenizer(name)
        with loading(name) as (source, options):
            model, info = AutoModelForSequenceClassification.from_pretrained(
                source, dtype=torch.float32, output_loading_info=True, **options
            )
        if missing := sorted(info["missing_keys"]):
            # transformers fills these with random numbers, and every verdict would be noise.
            raise JudgeError(f"{name!r} is not a trained classifier: it has no weights for {missing[0]}")
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
            model.config.pad_token_id = tokenizer.pad_token_id
        return cls(model.to(target).eval(), tokenizer)

    @property
    def labels(self) -> dict[int, str]:
        """Output → name, as the config says."""
        return {int(index): str(name) for index, name in self.model.config.id2label.items()}

    def probabilities(
        self, pairs: Sequence[tuple[str, str]], batch_size: int, max_length: int
    ) -> list[list[float] | None]:
        """Label probabilities of each pair, in order; None where the claim alone fills the model."""
        length = min(max_length, self._longest())
        special = self.tokenizer.num_special_tokens_to_add(pair=True)
        claims = self.tokenizer([claim for _, claim in pairs], add_special_tokens=False)["input_ids"]
        usable = [i for i, claim in enumerate(claims) if len(claim) + special < length]
        # Pairs of like length together, so that little is computed on padding.
        usable.sort(key=lambda i: (len(pairs[i][0]) + len(pairs[i][1]), i))
        found: list[list[float] | None] = [None] * len(pairs)
        for start in range(0, len(usable), batch_size):
            chosen = usable[start : start + batch_size]
            with torch.inference_mode():
                logits = self.logits([pairs[i] for i in chosen], length)
            for i, row in zip(chosen, logits.softmax(dim=-1).tolist(), strict=True):
                found[i] = row
        return found

    def logits(self, pairs: Sequence[tuple[str, str]], max_length: int) -> Tensor:
        """Float logits, shape (pairs, labels); premises are cut at `max_length` tokens of the pair."""
        batch = self.tokenizer(
            [premise for premise, _ in pairs],
            [claim for _, claim in pairs],
            truncation="only_first",
            max_length=max_length,
            padding=True,
            return_tensors="pt",
        ).to(self.model.device)
        logits: Tensor = self.model(**batch).logits.float()
        return logits

    def _longest(self) -> int:
        """Most tokens the model takes; tokenizers without a limit of their own say 10^30."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        return min(int(self.tokenizer.model_max_length), int(positions or self.tokenizer.model_max_length))
