"""NLI judge: any Hugging Face sequence classifier that has a label for entailment.

The model's config says which output means entailment: MNLI models have it first, second or last.
Only the premise is ever truncated, never the claim. The small judge is such a classifier, made by
`sleuth judge train` from all-MiniLM-L6-v2, since no package contains a small one.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from sleuth.checked import Checked, NonEmpty, Positive
from sleuth.encoders.loading import loading
from sleuth.errors import EngineError, JudgeError
from sleuth.judges.base import Judge
from sleuth.storage import cache_folder

_TURN = threading.Lock()
"""Held during verdicts: a tokenizer keeps its truncation between calls, so that threads would change each other's."""
_ENTAILMENT_LABELS = frozenset(("entailment", "entail", "entails", "entailed"))


@dataclass(frozen=True)
class NLIJudge(Checked, Judge):
    """P(entailment) by a sequence classifier."""

    model: NonEmpty
    """Hugging Face name or local folder, such as "microsoft/deberta-v2-xlarge-mnli"."""
    label: str = ""
    """Name of the entailment label in the model's config; "" = the one called "entailment"."""
    batch_size: Positive = 32
    """Pairs per forward pass."""
    max_length: Annotated[int, Meta(ge=16)] = 512
    """Most tokens of premise and claim together; less if the model has fewer positions."""
    device: str = "auto"
    """"auto", "cpu", "cuda" or another torch device."""

    def open(self) -> None:
        _ = self._loaded

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """See Judge; None for a claim of more than half the tokens, and for a probability that is NaN."""
        if not pairs:
            return []
        model, index = self._loaded
        with _TURN:
            return self._verdicts(model, index, pairs)

    def _verdicts(self, model: Any, index: int, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        read = model.tokenizer
        # The longer text is cut first: a claim of at most half the tokens is never cut.
        room = (read.model_max_length - read.num_special_tokens_to_add(pair=True)) // 2
        claims = read([c for _, c in pairs], add_special_tokens=False, truncation=True, max_length=room + 1)
        options = {"batch_size": self.batch_size, "apply_softmax": True, "show_progress_bar": False}
        try:
            rows = model.predict(list(pairs), **options)
        except RuntimeError as error:  # out of memory, or a lost device
            raise JudgeError(f"judge {self.model!r} failed: {str(error).splitlines()[0]}") from error
        fits = (len(claim) <= room for claim in claims["input_ids"])
        values = np.clip([float(row[index]) for row in rows], 0, 1).tolist()
        return [v if fit and np.isfinite(v) else None for v, fit in zip(values, fits, strict=True)]

    @cached_property
    def _loaded(self) -> tuple[Any, int]:
        """The sentence-transformers CrossEncoder in float32, and its output for entailment."""
        try:
            with loading(self.model, f"judge {self.model!r}", "dense") as options:
                from sentence_transformers import CrossEncoder

                device = None if self.device == "auto" else self.device
                model = CrossEncoder(self.model, device=device, model_kwargs={"dtype": "float32"}, **options)
        except EngineError as error:
            raise JudgeError(str(error)) from error
        config, tokenizer = model.model.config, model.tokenizer
        architecture = (config.architectures or [""])[0]
        if not architecture.endswith("ForSequenceClassification"):
            # The classifier's weights would be random numbers, and so would the verdicts.
            raise JudgeError(f"{self.model!r} is not a trained classifier: its config names {architecture!r}")
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
            config.pad_token_id = tokenizer.pad_token_id
        positions = getattr(config, "max_position_embeddings", self.max_length)
        tokenizer.model_max_length = min(self.max_length, tokenizer.model_max_length, positions)
        labels = {int(index): str(name) for index, name in config.id2label.items()}
        return model.eval(), entailment_index(labels, self.label, self.model)


def entailment_index(labels: dict[int, str], label: str, model: str) -> int:
    """The output that means entailment. Raises JudgeError unless exactly one label is `label`, or an entailment's."""
    wanted = frozenset((label.strip().lower(),)) if label.strip() else _ENTAILMENT_LABELS
    found = [index for index, name in labels.items() if name.strip().lower() in wanted]
    if len(found) != 1 or len(labels) < 2:
        known = ", ".join(labels[index] for index in sorted(labels))
        missing = f"label {label!r}" if label.strip() else "one label for entailment"
        raise JudgeError(f"judge {model!r} does not have {missing}; its labels are {known}: set judge.label")
    return found[0]


@dataclass(frozen=True)
class SmallJudge(Judge):
    """The judge trained on this machine."""

    model: str = ""
    """Its folder; "" = the default of `sleuth judge train`."""

    def open(self) -> None:
        self._judge.open()

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return self._judge.entailment(pairs)

    @cached_property
    def _judge(self) -> Judge:
        folder = Path(self.model).expanduser() if self.model else default_folder()
        if (folder / "config.json").is_file():
            return NLIJudge(str(folder))
        raise JudgeError(f"no trained judge in {folder}: run 'sleuth judge train PAIRS.jsonl -o {folder}'")


def default_folder() -> Path:
    """Folder of the trained judge unless another is named."""
    return cache_folder() / "small-judge"
