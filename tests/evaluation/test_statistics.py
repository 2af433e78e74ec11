"""Intervals and tests against closed forms, exact enumeration and known limits."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import DataError
from sleuth.evaluation.statistics import (
    Difference,
    Estimate,
    bootstrap_mean,
    minimum_detectable_difference,
    paired_difference,
    sign_flip_p_value,
)


def test_interval_of_a_proportion_is_the_binomial_one() -> None:
    """Resampling 0/1 values draws Binomial(n, p) / n; here its 2.5 % and 97.5 % quantiles are 31/100 and 50/100."""
    estimate = bootstrap_mean([1.0] * 40 + [0.0] * 60)
    assert estimate.value == 0.4
    assert estimate.low == pytest.approx(0.31, abs=0.011)
    assert estimate.high == pytest.approx(0.50, abs=0.011)


@pytest.mark.parametrize("n", [50, 400])
def test_few_and_many_distinct_values_are_resampled_by_the_same_law(n: int) -> None:
    """Both ways of drawing agree with the normal limit, mean ± 1.96 sd/√n."""
    values = np.random.default_rng(3).gamma(2.0, size=n)
    assert (len(np.unique(values)) > 200) == (n == 400)
    estimate = bootstrap_mean(values.tolist())
    half = 1.96 * values.std() / math.sqrt(n)
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.12 * half)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.12 * half)


def test_figures_do_not_change_from_run_to_run_but_with_the_seed() -> None:
    values = [0.0, 0.25, 1.0, 0.5] * 5
    assert bootstrap_mean(values) == bootstrap_mean(values)
    many = np.linspace(0, 1, 500).tolist()
    assert bootstrap_mean(many) == bootstrap_mean(many)
    assert bootstrap_mean(many, seed=1) != bootstrap_mean(many)


def test_small_samples_are_defined() -> None:
    assert bootstrap_mean([]) == Estimate(None, None, None, 0)
    assert bootstrap_mean([None, None]) == Estimate(None, None, None, 0, left_out=2)
    assert bootstrap_mean([0.7]) == Estimate(0.7, None, None, 1)
    assert bootstrap_mean([1.0, 1.0, None]) == Estimate(1.0, 1.0, 1.0, 2, left_out=1)
    assert paired_difference([], []) == Difference(None, None, None, None, None, 0)
    assert paired_difference([0.0], [1.0]) == Difference(1.0, None, None, 1.0, None, 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_cannot_be_averaged_are_refused(bad: float) -> None:
    with pytest.raises(DataError, match=rf"value 1 is {bad}"):
        bootstrap_mean([0.0, bad])
    with pytest.raises(DataError, match="must be None"):
        sign_flip_p_value([bad])


def test_paired_difference_uses_only_pairs() -> None:
    first = [0.0, 0.0, 1.0, None, 1.0, 0.0]
    second = [1.0, 0.0, 1.0, 1.0, None, 1.0]
    difference = paired_difference(first, second)
    assert (difference.n, difference.value) == (4, 0.5)
    # Two non-zero differences, both +1: of the four sign patterns two are as extreme.
    assert difference.p_value == 0.5
    # sd of (1, 0, 0, 1) is √(1/3); 1.95996 · √(1/3) / √4.
    assert difference.detectable == pytest.approx(0.5658, abs=1e-4)
    with pytest.raises(DataError, match="equally many, not 1 and 2"):
        paired_difference([0.0], [0.0, 1.0])


def test_pairing_removes_what_both_share() -> None:
    rng = np.random.default_rng(5)
    easy = rng.random(300)
    paired = paired_difference(easy.tolist(), (easy + 0.01).tolist())
    assert paired.low == pytest.approx(0.01)
    assert paired.p_value is not None
    assert paired.p_value < 0.001
    single = bootstrap_mean(easy.tolist())
    assert single.high is not None
    assert single.low is not None
    assert single.high - single.low > 0.05


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.2, 0.3, 1.0]), min_size=1, max_size=9))
def test_few_differences_give_the_exact_p(differences: list[float]) -> None:
    bar = abs(math.fsum(differences)) - 1e-9
    sums = [
        abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    assert sign_flip_p_value(differences) == pytest.approx(sum(s >= bar for s in sums) / len(sums))


def test_many_differences_give_the_binomial_p() -> None:
    """60 wins, 40 losses: p = P(|2B - 100| ≥ 20), B ~ Binomial(100, 1/2), is 0.05689."""
    exact = sum(math.comb(100, k) for k in range(101) if abs(2 * k - 100) >= 20) / 2**100
    assert exact == pytest.approx(0.05689, abs=1e-5)
    assert sign_flip_p_value([1.0] * 60 + [-1.0] * 40 + [0.0] * 500) == pytest.approx(exact, abs=0.01)


def test_p_is_one_without_any_difference_and_never_zero() -> None:
    assert sign_flip_p_value([0.0, 0.0]) == 1.0
    assert sign_flip_p_value([]) is None
    assert sign_flip_p_value([1.0] * 1000) == 1 / 10_001


def test_p_is_uniform_when_nothing_differs() -> None:
    """Under exchangeability at most 5 % of tests may say p ≤ 0.05; 400 tests leave ± 2.2 points."""
    rng = np.random.default_rng(11)
    p_values = [sign_flip_p_value(rng.normal(size=30).tolist(), flips=499, seed=i) for i in range(400)]
    assert 0.025 < np.mean([p is not None and p <= 0.05 for p in p_values]) < 0.075


def test_minimum_detectable_difference() -> None:
    assert minimum_detectable_difference(500) == pytest.approx(0.0438, abs=1e-4)
    assert minimum_detectable_difference(125) == pytest.approx(0.0877, abs=1e-4)
    # With 80 % power: (1.95996 + 0.84162) · 0.3 / 10.
    assert minimum_detectable_difference(100, sd=0.3, power=0.8) == pytest.approx(0.08405, abs=1e-5)
    assert minimum_detectable_difference(1) is None
    assert minimum_detectable_difference(0) is None


@pytest.mark.slow
def test_ten_thousand_questions_take_at_most_a_second() -> None:
    """The best of three, in processor time, so that other programs on the machine count less."""
    values = np.random.default_rng(0).random(10_000).tolist()
    seconds = []
    for _ in range(3):
        began = time.process_time()
        bootstrap_mean(values)
        seconds.append(time.process_time() - began)
    assert min(seconds) <= 1.0
