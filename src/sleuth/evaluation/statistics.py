"""Means with bootstrap intervals, and paired tests between systems. Questions are the unit that is resampled.

Sources: percentile bootstrap (Efron and Tibshirani 1993, ch. 13), paired sign-flip test (Fisher 1935; Smucker
et al. 2007 for retrieval), Holm 1979. The same values always give the same figures. Undefined figures are None.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sleuth.errors import DataError

RESAMPLES = 10_000
CONFIDENCE = 0.95
_Z = 1.959964
_FEW = 200  # Most distinct values for which a resample is one multinomial draw of their counts.
_BLOCK = 1 << 15
"""Values drawn at once. Larger arrays leave the processor's cache, which is up to three times slower."""
_EXACT_FLIPS = 13  # Most non-zero differences for which all sign patterns are enumerated.

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over n questions (None without any) and its 95 % percentile bootstrap interval (None below two)."""

    value: float | None
    low: float | None
    high: float | None
    """None also for a ratio without an upper bound: its denominator is 0 in resamples of the upper tail."""
    n: int
    left_out: int = 0  # Questions for which the figure does not exist.

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """Mean of second − first over the questions that have both values.

    `p_value` is that of the two-sided sign-flip test, None without pairs; `detectable` is the minimum
    detectable difference at the spread of these differences, None below two pairs.
    """

    p_value: float | None = None
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class SeedReport:
    """One figure over several training seeds: spread over questions and spread over seeds, reported apart.

    A resampled question brings the values of all its seeds. `per_seed` holds the mean of each seed over the
    same questions, in the order given; `seed_sd` is their sample standard deviation, None below two.
    """

    questions: Estimate
    per_seed: tuple[float, ...]
    seed_sd: float | None
    seeds: int


def bootstrap_mean(values: Sequence[float | None]) -> Estimate:
    """Mean of the values that exist, with its interval. Raises DataError for NaN or infinity."""
    present = _finite([value for value in values if value is not None])
    n = len(present)
    if n < 2:
        mean = float(present[0]) if n else None
        return Estimate(mean, None, None, n, len(values) - n)
    low, high = np.quantile(_resampled_means(present), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(present.mean()), float(low), float(high), n, len(values) - n)


def bootstrap_ratio(tops: Sequence[float | None], bottoms: Sequence[float | None]) -> Estimate:
    """Ratio of the totals over the questions that have both values, with its interval. Raises as bootstrap_mean."""
    both = [(t, b) for t, b in zip(tops, bottoms, strict=True) if t is not None and b is not None]
    top, bottom = (_finite([pair[side] for pair in both]) for side in (0, 1))
    n, left_out = len(both), len(tops) - len(both)
    value = float(top.sum() / bottom.sum()) if n and bottom.sum() else None
    if value is None or n < 2:
        return Estimate(value, None, None, n, left_out)
    return Estimate(value, *ratio_interval(top, bottom), n, left_out)


def ratio_interval(
    tops: ArrayLike, bottoms: ArrayLike, resamples: int = RESAMPLES
) -> tuple[float | None, float | None]:
    """Interval of Σ tops / Σ bottoms, which are not negative; a bound is None if resamples without bottoms reach it."""
    pairs = np.array([tops, bottoms], dtype=np.float64).T
    rng, n = np.random.default_rng(0), len(pairs)
    drawn = [pairs[rng.integers(n, size=(rows, n))].sum(axis=1) for rows in blocks(n, resamples)]
    top, bottom = np.concatenate(drawn).T
    ratios = np.divide(top, bottom, out=np.full(resamples, np.inf), where=bottom > 0)
    tail = (1 - CONFIDENCE) / 2
    # Observed values only: nothing can be interpolated between a finite and an infinite one.
    ends = np.quantile(ratios, [tail, 1 - tail], method="nearest")
    low, high = (float(end) if np.isfinite(end) else None for end in ends)
    return low, high


def paired_difference(first: Sequence[float | None], second: Sequence[float | None]) -> Difference:
    """Mean of second − first with interval and p; position i is question i in both. Raises as bootstrap_mean."""
    pairs = zip(first, second, strict=True)
    deltas = [None if a is None or b is None else b - a for a, b in pairs]
    mean, present = bootstrap_mean(deltas), [delta for delta in deltas if delta is not None]
    spread = float(np.std(present, ddof=1)) if mean.n > 1 else 0.0
    return Difference(
        **mean.to_dict(),
        p_value=sign_flip_p_value(present),
        detectable=minimum_detectable_difference(mean.n, spread),
    )


def over_seeds(runs: Sequence[Sequence[float | None]]) -> SeedReport:
    """Spread over seeds and over questions; `runs[s][i]` is the value of question i with seed s.

    Only questions with a value in every run count: means over different questions would differ by more
    than the seed. Raises as bootstrap_mean.
    """
    complete = [column for column in zip(*runs, strict=True) if None not in column]
    values = _finite(complete).reshape(len(complete), len(runs))
    means = values.mean(axis=0) if complete else np.empty(0)
    questions = bootstrap_mean(values.mean(axis=1).tolist())
    return SeedReport(
        questions=replace(questions, left_out=len(runs[0]) - len(complete)),
        per_seed=tuple(means.tolist()),
        seed_sd=float(means.std(ddof=1)) if len(means) > 1 else None,
        seeds=len(runs),
    )


def seed_means(runs: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Each question's mean over runs; None where a run has no value."""
    columns = ([value for value in column if value is not None] for column in zip(*runs, strict=True))
    return [math.fsum(column) / len(runs) if len(column) == len(runs) else None for column in columns]


def sign_flip_p_value(differences: Sequence[float]) -> float | None:
    """Two-sided p of exchangeable systems, exact for few non-zero differences; None without differences."""
    deltas = _finite([delta for delta in differences if delta != 0.0])
    total, m = float(deltas.sum()), len(deltas)
    # Sums in another order differ in their last bits; without a tolerance the observed signs could be missed.
    least = abs(total) - 1e-9 * float(np.abs(deltas).sum())

    def hits(kept: NDArray[Any]) -> int:
        return int(np.count_nonzero(np.abs(2 * (kept @ deltas) - total) >= least))

    if m <= _EXACT_FLIPS:
        patterns = np.arange(1 << m)[:, None] >> np.arange(m) & 1
        return hits(patterns) / len(patterns) if len(differences) else None
    rng = np.random.default_rng(0)
    found = sum(hits(rng.integers(2, size=(rows, m), dtype=bool)) for rows in blocks(m))
    return (1 + found) / (1 + RESAMPLES)


def minimum_detectable_difference(n: int, sd: float = 0.5) -> float | None:
    """Half the width of a 95 % interval, z_0.975 · sd / √n; None for n < 2. No 0/1 score has an sd above 0.5."""
    return None if n < 2 else _Z * sd / math.sqrt(n)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p-values, in the order given; None, a test that was not made, stays None."""
    made = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(made):
        # The running maximum keeps a larger p-value from being adjusted below a smaller one.
        largest = adjusted[index] = max(largest, min(1.0, (len(made) - rank) * p))
    return adjusted


def _finite(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if len(bad := array[~np.isfinite(array)]):
        raise DataError(f"{bad[0]} among the values; a figure that does not exist is None")
    return array


def _resampled_means(values: Floats) -> Floats:
    rng, n = np.random.default_rng(0), len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _FEW:
        return np.asarray(rng.multinomial(n, counts / n, size=RESAMPLES) @ distinct / n, dtype=np.float64)
    return np.concatenate([rng.choice(values, size=(rows, n)).mean(axis=1) for rows in blocks(n)])


def blocks(n: int, resamples: int = RESAMPLES) -> list[int]:
    """Numbers of resamples of n values to draw at once, which add up to `resamples`."""
    rows = max(1, _BLOCK // n)
    return [min(rows, resamples - start) for start in range(0, resamples, rows)]
