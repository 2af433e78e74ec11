"""Labelled pairs: what an entailment judge is trained and measured on.

One JSON object a line: {"premise", "hypothesis", "label"}. The label is "entailment", "neutral" or
"contradiction" (SNLI), or "attributable" or "not attributable" (AttributionBench), of which the
second says only that it is not entailment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sleuth.errors import DataError
from sleuth.fields import FieldError, as_record, as_text
from sleuth.files import decode_json, lines
from sleuth.judges.base import Judge

LABELS = ("entailment", "neutral", "contradiction")
"""Outputs of the trained judge, in order."""

_MEANINGS: dict[str, tuple[int, ...]] = {
    "entailment": (0,),
    "neutral": (1,),
    "contradiction": (2,),
    "attributable": (0,),
    "not attributable": (1, 2),
    "not_entailment": (1, 2),
}


class LabelledPair(NamedTuple):
    """One pair and which of LABELS may be right."""

    premise: str
    hypothesis: str
    allowed: tuple[int, ...]

    @property
    def entailed(self) -> bool:
        """Whether the premise entails the hypothesis."""
        return self.allowed == (0,)


class Accuracy(NamedTuple):
    """How often a judge is right about entailment or not, on one file."""

    n: int
    """Pairs with a verdict."""
    invalid: int
    """Pairs without one; not in the other figures."""
    accuracy: float
    """Share of right verdicts at a probability of 0.5; NaN without any verdict."""
    balanced: float
    """Mean of the accuracies on entailed and on other pairs: 0.5 for a judge that always says the same."""
    auc: float
    """Probability that an entailed pair scores above another one, ties half: needs no threshold."""


def read_pairs(path: Path) -> list[LabelledPair]:
    """The pairs of a JSON-lines file, compressed or not. DataError names file, line, field and reason."""
    pairs = []
    for number, line in lines(path):
        try:
            record = as_record(decode_json(line), "row")
            premise, hypothesis = (as_text(record.get(key), key) for key in ("premise", "hypothesis"))
            label = as_text(record.get("label"), "label")
        except (FieldError, DataError) as error:
            raise DataError(f"{path}:{number}: {error}") from error
        if label not in _MEANINGS:
            raise DataError(f"{path}:{number}: label: {label!r} is none of {', '.join(_MEANINGS)}")
        pairs.append(LabelledPair(premise, hypothesis, _MEANINGS[label]))
    if not pairs:
        raise DataError(f"{path}: no labelled pairs")
    return pairs


def measure(judge: Judge, pairs: Sequence[LabelledPair]) -> Accuracy:
    """The judge's accuracy on entailment against everything else."""
    verdicts = judge.entailment([(pair.premise, pair.hypothesis) for pair in pairs])
    known = [(v, p.entailed) for v, p in zip(verdicts, pairs, strict=True) if v is not None]
    positive = sorted(v for v, entailed in known if entailed)
    negative = sorted(v for v, entailed in known if not entailed)
    right_positive = sum(v >= 0.5 for v in positive)
    right_negative = sum(v < 0.5 for v in negative)
    return Accuracy(
        n=len(known),
        invalid=len(pairs) - len(known),
        accuracy=_share(right_positive + right_negative, len(known)),
        balanced=(_share(right_positive, len(positive)) + _share(right_negative, len(negative))) / 2,
        auc=_auc(positive, negative),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Both lists sorted."""
    below = equal = 0
    low = high = 0
    for value in positive:
        while low < len(negative) and negative[low] < value:
            low += 1
        high = max(high, low)
        while high < len(negative) and negative[high] == value:
            high += 1
        below, equal = below + low, equal + high - low
    return _share(below + equal / 2, len(positive) * len(negative))
