"""NLI judge: any Hugging Face sequence classifier that knows a label for entailment.

Which output means entailment is read from the model's config and never assumed: MNLI models
exist with it first, second and last. Only the premise is ever truncated, never the claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sleuth.errors import ConfigError, EngineError, JudgeError
from sleuth.judges.base import Judge

if TYPE_CHECKING:
    from sleuth.judges.classifier import Classifier

_ENTAILMENT_LABELS = frozenset(("entailment", "entail", "entails", "entailed"))


@dataclass(frozen=True)
class NLIJudge(Judge):
    """P(entailment) by a sequence classifier, loaded at the first verdict."""

    model: str
    """Hugging Face name or local folder, such as "microsoft/deberta-v2-xlarge-mnli"."""
    label: str = ""
    """Name of the entailment label in the model's config; "" = the one called "entailment"."""
    batch_size: int = 32
    """Pairs per forward pass, at least 1."""
    max_length: int = 512
    """Most tokens of premise and claim together, at least 16; less where the model holds less."""
    device: str = "auto"
    """"auto", "cpu", "cuda" or another torch device."""

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("judge.model is empty: name a sequence classifier or its folder")
        if self.batch_size < 1 or self.max_length < 16:
            raise ConfigError(
                f"judge.batch_size must be at least 1 and judge.max_length at least 16, "
                f"not {self.batch_size} and {self.max_length}"
            )

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """See Judge; None for a claim too long for the model, and for a probability that is not a number."""
        if not pairs:
            return []
        classifier, index = self._loaded
        try:
            rows = classifier.probabilities(pairs, self.batch_size, self.max_length)
        except RuntimeError as error:  # out of memory, a device that went away
            raise JudgeError(f"judge {self.model!r} failed: {str(error).splitlines()[0]}") from error
        return [_verdict(row, index) for row in rows]

    @cached_property
    def _loaded(self) -> tuple[Classifier, int]:
        try:
            from sleuth.judges.classifier import Classifier

            classifier = Classifier.load(self.model, self.device)
        except ModuleNotFoundError as error:
            raise JudgeError(
                f"{error.name} is not installed: pip install '.[train]' in the Sleuth checkout"
            ) from error
        except EngineError as error:
            raise JudgeError(str(error)) from error
        return classifier, entailment_index(classifier.labels, self.label, self.model)


def entailment_index(labels: dict[int, str], label: str, model: str) -> int:
    """The output that means entailment; JudgeError unless exactly one label is `label` (or says so itself)."""
    wanted = frozenset((label.strip().lower(),)) if label.strip() else _ENTAILMENT_LABELS
    found = [index for index, name in labels.items() if name.strip().lower() in wanted]
    if len(found) != 1 or len(labels) < 2:
        known = ", ".join(labels[index] for index in sorted(labels))
        what = f"label {label!r}" if label.strip() else "one label for entailment"
        raise JudgeError(f"judge {model!r} does not have {what}; its labels are {known}: set judge.label")
    return found[0]


def _verdict(row: Any, index: int) -> float | None:
    if row is None or not math.isfinite(row[index]):
        return None
    return min(1.0, max(0.0, float(row[index])))
