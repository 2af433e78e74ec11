"""Means with intervals, and paired tests between runs. Questions are the unit that is resampled.

Sources: percentile bootstrap (Efron and Tibshirani 1993, ch. 13); paired randomisation test by
sign flips (Fisher 1935; Smucker et al. 2007 for retrieval). Deterministic: the same values and
seed give the same figures. Undefined figures are None, never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sleuth.errors import DataError

RESAMPLES = 10_000
CONFIDENCE = 0.95
_FEW = 200
"""Up to this many distinct values a resample is drawn as counts of values: the same law, far fewer draws."""
_BLOCK = 1 << 13
"""Most numbers drawn at once (but at least one resample). Larger arrays are fetched from the system and
given back each time, which can take three times as long as the drawing itself."""
_SIGNS = 1 << 18
"""Most random signs at once: they cost so little that larger arrays pay."""
_EXACT_FLIPS = 13
"""Up to this many non-zero differences all 2^m sign patterns are tried instead of random ones."""

_HALF_WORD = np.uint64(32)
_LOW_BITS = np.uint64(2**32 - 1)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions and its 95 % percentile bootstrap interval."""

    value: float | None
    """The mean; None if no question has a value."""
    low: float | None
    """None below two values: one observation says nothing about spread."""
    high: float | None
    n: int
    """Questions with a value."""
    left_out: int = 0
    """Questions for which the figure does not exist."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first on the same questions."""

    value: float | None
    """The mean difference; None without pairs."""
    low: float | None
    """None below two pairs."""
    high: float | None
    p_value: float | None
    """Two-sided sign-flip test; None without pairs."""
    detectable: float | None
    """Smallest mean difference whose interval would leave zero out, at the spread seen here; None below two pairs."""
    n: int
    """Questions with a value on both sides."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SeedReport:
    """One figure over several training seeds: two sources of spread, which do not stand in for one another."""

    questions: Estimate
    """Mean over seeds and questions; its interval resamples questions, each with the values of all its seeds."""
    per_seed: tuple[float, ...]
    """The mean of each seed over the same questions, in the order given; empty if no question has all values."""
    seed_sd: float | None
    """Sample standard deviation of `per_seed`: what another seed may change; None below two means."""
    seeds: int
    """Training runs."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "per_seed": list(self.per_seed)}


def _array(values: Sequence[float]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.size and not np.isfinite(array).all():
        position = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(f"value {position} is {array[position]}; a figure that does not exist must be None")
    return array


def _resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    """Means of `resamples` draws of n values with replacement, shape [resamples]."""
    n = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _FEW:
        drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples)
        return np.asarray(drawn @ distinct / n, dtype=np.float64)
    bits = np.random.PCG64(seed)
    means = np.empty(resamples)
    rows = max(1, _BLOCK // n)
    drawn_values = np.empty((rows, n))
    for start in range(0, resamples, rows):
        block = means[start : start + rows]
        # "clip" only spares the bounds check, and with it a copy: every index is in range.
        values.take(_indices(bits, rows * n, n).reshape(rows, n), out=drawn_values, mode="clip")
        block[:] = drawn_values[: len(block)].sum(axis=1)
    return means / n


def _indices(bits: np.random.PCG64, count: int, n: int) -> NDArray[np.int64]:
    """`count` draws from 0 … n − 1, two of each 64 random bits, as ⌊n u / 2³²⌋ for 32 bits u.

    Twice as fast as Generator.integers, which rejects some u so that all indices are equally likely to the
    last bit; here their probabilities differ by less than one part in 2³² / n, unseen at any sample size.
    """
    half = (count + 1) // 2
    words = bits.random_raw(half)
    drawn = np.empty((2, half), dtype=np.uint64)
    np.right_shift(words, _HALF_WORD, out=drawn[0])
    np.bitwise_and(words, _LOW_BITS, out=drawn[1])
    np.multiply(drawn, np.uint64(n), out=drawn)
    np.right_shift(drawn, _HALF_WORD, out=drawn)
    return drawn.reshape(-1)[:count].view(np.int64)


def _interval(values: Floats, resamples: int, seed: int) -> tuple[float, float] | tuple[None, None]:
    if len(values) < 2:
        return None, None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(_resampled_means(values, resamples, seed), [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_mean(values: Sequence[float | None], *, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """Mean of the values that exist, with its interval. Raises DataError for NaN or infinity."""
    present = _array([value for value in values if value is not None])
    low, high = _interval(present, resamples, seed)
    return Estimate(
        value=float(present.mean()) if len(present) else None,
        low=low,
        high=high,
        n=len(present),
        left_out=len(values) - len(present),
    )


def over_seeds(
    runs: Sequence[Sequence[float | None]], *, resamples: int = RESAMPLES, seed: int = 0
) -> SeedReport:
    """Spread over seeds apart from spread over questions; `runs[s][i]` is the value of question i with seed s.

    Only questions with a value in every run count: means over different questions would differ by more
    than the seed. Raises DataError without runs, for runs of unequal length, NaN or infinity.
    """
    if not runs:
        raise DataError("no runs to report seeds of")
    if len({len(run) for run in runs}) > 1:
        raise DataError(f"runs must have equally many questions, not {[len(run) for run in runs]}")
    columns: list[tuple[float, ...]] = []
    for column in zip(*runs, strict=True):
        present = tuple(value for value in column if value is not None)
        if len(present) == len(runs):
            columns.append(present)
    values = _array([value for column in columns for value in column]).reshape(len(columns), len(runs))
    means = values.mean(axis=0) if columns else np.empty(0)
    questions = bootstrap_mean(values.mean(axis=1).tolist(), resamples=resamples, seed=seed)
    return SeedReport(
        questions=replace(questions, left_out=len(runs[0]) - len(columns)),
        per_seed=tuple(means.tolist()),
        seed_sd=float(means.std(ddof=1)) if len(means) > 1 else None,
        seeds=len(runs),
    )


def paired_difference(
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Mean of second − first over the questions with both values; position i is question i in both.

    Raises DataError for unequal lengths, NaN or infinity.
    """
    if len(first) != len(second):
        raise DataError(f"paired values must be equally many, not {len(first)} and {len(second)}")
    pairs = zip(first, second, strict=True)
    deltas = _array([b - a for a, b in pairs if a is not None and b is not None])
    low, high = _interval(deltas, resamples, seed)
    n = len(deltas)
    return Difference(
        value=float(deltas.mean()) if n else None,
        low=low,
        high=high,
        p_value=sign_flip_p_value(deltas.tolist(), flips=resamples, seed=seed),
        detectable=minimum_detectable_difference(n, sd=float(deltas.std(ddof=1))) if n > 1 else None,
        n=n,
    )


def sign_flip_p_value(differences: Sequence[float], *, flips: int = RESAMPLES, seed: int = 0) -> float | None:
    """Two-sided p of "the two systems are exchangeable on every question"; None without differences.

    Exact for few non-zero differences, else (1 + hits) / (1 + flips), which can never be 0.
    """
    every = _array(differences)
    deltas = every[every != 0.0]
    if not len(every):
        return None
    if not len(deltas):
        return 1.0
    total = float(deltas.sum())
    # Sums in another order differ in the last bits; without a tolerance the observed pattern itself could be missed.
    bar = abs(total) - 1e-9 * float(np.abs(deltas).sum())
    if len(deltas) <= _EXACT_FLIPS:
        patterns = np.arange(1 << len(deltas))[:, None] >> np.arange(len(deltas)) & 1
        return float(np.mean(np.abs(2 * (patterns @ deltas) - total) >= bar))
    rng = np.random.default_rng(seed)
    width = math.ceil(len(deltas) / 8)
    rows = max(1, _SIGNS // len(deltas))
    hits = 0
    for start in range(0, flips, rows):
        count = min(rows, flips - start)
        packed = np.frombuffer(rng.bytes(count * width), dtype=np.uint8).reshape(count, width)
        kept = np.unpackbits(packed, axis=1, count=len(deltas)).astype(np.float64)
        hits += int(np.count_nonzero(np.abs(2 * (kept @ deltas) - total) >= bar))
    return (1 + hits) / (1 + flips)


def minimum_detectable_difference(n: int, *, sd: float = 0.5, power: float = 0.5) -> float | None:
    """(z_0.975 + z_power) · sd / √n: the difference found significant with probability `power`.

    sd is that of the per-question value or difference; 0.5 is the largest a 0/1 score can have.
    At the default power this is half the width of the 95 % interval. None for n < 2.
    """
    if n < 2:
        return None
    z = NormalDist().inv_cdf
    return (z((1 + CONFIDENCE) / 2) + z(power)) * sd / math.sqrt(n)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p-values, in the order given; None, a test that was not made, stays None.

    Raises DataError for a p-value outside [0, 1]. Source: Holm 1979.
    """
    made = [(p, index) for index, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for p, index in made:
        if not 0.0 <= p <= 1.0:
            raise DataError(f"p-value {index} is {p}; it must be in [0, 1]")
    for rank, (p, index) in enumerate(sorted(made)):
        # The running maximum keeps a larger p-value from being adjusted below a smaller one.
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[index] = largest
    return adjusted
