"""Cost of a right answer: the sum of a cost over all questions by the number of right answers.

A ratio of sums: a mean of ratios does not exist if a question is wrong. Never infinite.
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
    """None if nothing was answered rightly, or if the cost of a question is unknown."""
    low: float | None
    """None without a value, below two questions, or without an upper bound on every resample."""
    high: float | None
    """None also if resamples without a right answer reach the upper tail: there is no upper bound."""
    n: int
    """Questions."""

    def __str__(self) -> str:
        """Value and interval in three significant digits."""
        if self.value is None:
            return "–"
        if self.low is None:
            return _amount(self.value)
        high = "no bound" if self.high is None else _amount(self.high)
        return f"{_amount(self.value)} [{_amount(self.low)}, {high}]"


def cost_per_right(costs: Sequence[float | None], right: Sequence[float]) -> Cost:
    """Σ costs / Σ right, questions resampled with their cost; `right` is 0 or 1, or a mean over seeds."""
    known = [cost for cost in costs if cost is not None]
    n, total = len(right), sum(right)
    if len(known) < n or not total:
        return Cost(None, None, None, n)
    value = sum(known) / total
    if n < 2:
        return Cost(value, None, None, n)
    pairs = np.array([known, right], dtype=np.float64).T
    rng = np.random.default_rng(0)
    rows = max(1, _BLOCK // n)
    sizes = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    spent, earned = np.concatenate([pairs[rng.integers(0, n, (size, n))].sum(axis=1) for size in sizes]).T
    ratios = np.divide(spent, earned, out=np.full(RESAMPLES, np.inf), where=earned > 0)
    tail = (1 - CONFIDENCE) / 2
    # Observed values only: nothing can be interpolated between a finite and an infinite one.
    ends = np.quantile(ratios, [tail, 1 - tail], method="nearest")
    low, high = (float(end) if np.isfinite(end) else None for end in ends)
    return Cost(value, low, high, n)


def _amount(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"
