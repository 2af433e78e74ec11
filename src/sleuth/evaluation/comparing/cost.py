"""What a right answer costs: the sum of a cost over all questions by the number answered rightly.

A ratio of sums, since the mean of ratios does not exist where a question is wrong; never infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.evaluation.statistics import CONFIDENCE

RESAMPLES = 2_000
_BLOCK = 1 << 20
"""Most indices drawn at once."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost per right answer and its 95 % percentile bootstrap interval over questions."""

    value: float | None
    """None if nothing was answered rightly, or the cost is not known of every question."""
    low: float | None
    """None if the interval has no such end, or below two questions."""
    high: float | None
    """None also where the resamples reach sets without a right answer: there is no upper bound."""
    n: int
    """Questions."""


def cost_per_right(
    costs: Sequence[float | None], right: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0
) -> Cost:
    """Σ costs / Σ right, questions resampled together with their cost; `right` is 0 or 1 (or a mean over seeds)."""
    known = [cost for cost in costs if cost is not None]
    n, total = len(right), sum(right)
    if len(known) < n or not n or not total:
        return Cost(None, None, None, n)
    value = sum(known) / total
    if n < 2:
        return Cost(value, None, None, n)
    spent, earned = np.asarray(known, dtype=np.float64), np.asarray(right, dtype=np.float64)
    rng = np.random.default_rng(seed)
    ratios = np.empty(resamples)
    rows = max(1, _BLOCK // n)
    for start in range(0, resamples, rows):
        drawn = rng.integers(0, n, size=(min(rows, resamples - start), n))
        sums, rights = spent[drawn].sum(axis=1), earned[drawn].sum(axis=1)
        ratios[start : start + len(drawn)] = np.divide(
            sums, rights, out=np.full(len(drawn), np.inf), where=rights > 0
        )
    tail = (1 - CONFIDENCE) / 2
    # Ends are observed values: between a finite and an infinite one nothing can be interpolated.
    low, high = np.quantile(ratios, [tail, 1 - tail], method="nearest")
    return Cost(value, _finite(low), _finite(high), n)


def _finite(end: float) -> float | None:
    return float(end) if np.isfinite(end) else None
