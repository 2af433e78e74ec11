"""Labelled pairs: training and test data of entailment judges, and the accuracy of a judge on them.

One JSON object per line: {"premise", "hypothesis", "label"}, with the labels of SNLI ("entailment",
"neutral", "contradiction") or AttributionBench ("attributable", "not attributable").
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sleuth.errors import DataError
from sleuth.fields import FieldError, as_record, as_text
from sleuth.files import decode_json, lines
from sleuth.judges.base import Judge

_ENTAILED = ("entailment", "attributable")
_OTHERS = ("neutral", "contradiction", "not attributable", "not_entailment")


class LabelledPair(NamedTuple):
    """One pair and whether the premise entails the hypothesis."""

    premise: str
    hypothesis: str
    entailed: bool


class Accuracy(NamedTuple):
    """Accuracy of a judge on one file; NaN where a class is missing."""

    n: int  # Pairs with a verdict.
    invalid: int  # Pairs without one, which the other figures leave out.
    accuracy: float  # Share of right verdicts at a probability of 0.5.
    balanced: float  # Mean of the accuracies on entailed and on other pairs: 0.5 for a constant verdict.
    auc: float  # Probability that an entailed pair scores above another one, ties half.


def read_pairs(path: Path) -> list[LabelledPair]:
    """The pairs of a JSON-lines file, compressed or not. DataError names file, line, field and reason."""
    pairs = []
    for number, line in lines(path):
        try:
            row = as_record(decode_json(line), "row")
            premise, claim, label = (as_text(row.get(k), k) for k in ("premise", "hypothesis", "label"))
            if label not in _ENTAILED + _OTHERS:
                raise FieldError("label", f"{label!r} is none of {', '.join(_ENTAILED + _OTHERS)}")
        except (FieldError, DataError) as error:
            raise DataError(f"{path}:{number}: {error}") from error
        pairs.append(LabelledPair(premise, claim, label in _ENTAILED))
    if not pairs:
        raise DataError(f"{path}: no labelled pairs")
    return pairs


def measure(judge: Judge, pairs: Sequence[LabelledPair]) -> Accuracy:
    """The judge's accuracy on entailment against everything else."""
    verdicts = judge.entailment([(pair.premise, pair.hypothesis) for pair in pairs])
    known = [(v, p.entailed) for v, p in zip(verdicts, pairs, strict=True) if v is not None]
    positive = np.array([v for v, entailed in known if entailed])
    negative = np.sort([v for v, entailed in known if not entailed])
    right = (positive >= 0.5, negative < 0.5)
    is_whole = len(positive) > 0 and len(negative) > 0
    ranks = np.searchsorted(negative, positive, "left") + np.searchsorted(negative, positive, "right")
    return Accuracy(
        n=len(known),
        invalid=len(pairs) - len(known),
        accuracy=float(np.concatenate(right).mean()) if known else float("nan"),
        balanced=float(np.mean([side.mean() for side in right])) if is_whole else float("nan"),
        auc=float(ranks.mean()) / (2 * len(negative)) if is_whole else float("nan"),
    )
