"""Intervals and tests against closed forms, exact enumeration and known limits."""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import DataError
from sleuth.evaluation.statistics import (
    Difference,
    Estimate,
    SeedReport,
    bootstrap_mean,
    bootstrap_ratio,
    holm,
    minimum_detectable_difference,
    over_seeds,
    paired_difference,
    sign_flip_p_value,
)


def test_interval_of_a_proportion_is_the_binomial_one() -> None:
    """Resampling 0/1 values draws Binomial(n, p) / n; here its 2.5 % and 97.5 % quantiles are 31/100 and 50/100."""
    estimate = bootstrap_mean([1.0] * 40 + [0.0] * 60)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.40, 0.31, 0.50), abs=0.011)


@pytest.mark.parametrize("n", [50, 400])
def test_few_and_many_distinct_values_have_the_normal_limit(n: int) -> None:
    """Draws of counts (up to 200 distinct values) and of single values both give mean ± 1.96 sd/√n."""
    values = np.random.default_rng(3).gamma(2.0, size=n)
    estimate = bootstrap_mean(values.tolist())
    half = 1.96 * values.std() / math.sqrt(n)
    assert estimate.value == pytest.approx(values.mean())
    assert (estimate.low, estimate.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.12 * half
    )


@pytest.mark.parametrize("place", [0, 350, 700])
def test_every_value_is_drawn_equally_often(place: int) -> None:
    """One value of 1 among 700 near zero: its count in a resample is Binomial(701, 1/701), 95 % in 0 to 3."""
    values = np.arange(701) * 1e-12
    values[place] = 1.0
    estimate = bootstrap_mean(values.tolist())
    assert (estimate.low, estimate.high) == pytest.approx((0.0, 3 / 701), abs=1e-8)


def test_figures_are_the_same_in_every_run() -> None:
    for values in ([0.0, 0.25, 1.0, 0.5] * 5, np.linspace(0, 1, 500).tolist()):
        assert bootstrap_mean(values) == bootstrap_mean(values)
        assert sign_flip_p_value(values) == sign_flip_p_value(values)


def test_small_samples_are_defined() -> None:
    assert bootstrap_mean([]) == Estimate(None, None, None, 0)
    assert bootstrap_mean([None, None]) == Estimate(None, None, None, 0, left_out=2)
    assert bootstrap_mean([0.7]) == Estimate(0.7, None, None, 1)
    assert bootstrap_mean([1.0, 1.0, None]) == Estimate(1.0, 1.0, 1.0, 2, left_out=1)
    assert paired_difference([], []) == Difference(None, None, None, 0)
    assert paired_difference([0.0], [1.0]) == Difference(1.0, None, None, 1, p_value=1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(bad: float) -> None:
    for refuses in (bootstrap_mean, sign_flip_p_value, lambda values: over_seeds([[1.0, 1.0], values])):
        with pytest.raises(DataError, match=rf"{bad} among the values"):
            refuses([0.0, bad])


def test_paired_difference_uses_only_pairs() -> None:
    difference = paired_difference([0.0, 0.0, 1.0, None, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0, None, 1.0])
    assert (difference.n, difference.left_out, difference.value) == (4, 2, 0.5)
    # Two non-zero differences, both +1: of the four sign patterns two are as extreme.
    assert difference.p_value == 0.5
    # sd of (1, 0, 0, 1) is √(1/3); 1.95996 · √(1/3) / √4.
    assert difference.detectable == pytest.approx(0.5658, abs=1e-4)
    with pytest.raises(ValueError, match="longer"):
        paired_difference([0.0], [0.0, 1.0])


def test_pairing_removes_the_variance_that_both_systems_share() -> None:
    easy = np.random.default_rng(5).random(300)
    paired = paired_difference(easy.tolist(), (easy + 0.01).tolist())
    assert paired.low == pytest.approx(0.01)
    assert paired.p_value is not None
    assert paired.p_value < 0.001
    single = bootstrap_mean(easy.tolist())
    assert (single.high or 0) - (single.low or 0) > 0.05


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
    assert sign_flip_p_value([1.0] * 60 + [-1.0] * 40 + [0.0] * 500) == pytest.approx(exact, abs=0.01)


def test_p_is_one_without_any_difference_and_never_zero() -> None:
    assert sign_flip_p_value([0.0, 0.0]) == 1.0
    assert sign_flip_p_value([]) is None
    assert sign_flip_p_value([1.0] * 1000) == 1 / 10_001


def test_p_is_uniform_under_exchangeability() -> None:
    """At most 5 % of tests may give p ≤ 0.05; 400 tests leave ± 2.2 points."""
    rng = np.random.default_rng(11)
    p_values = [sign_flip_p_value(rng.normal(size=30).tolist()) for _ in range(400)]
    assert 0.025 < np.mean([p is not None and p <= 0.05 for p in p_values]) < 0.075


def test_minimum_detectable_difference() -> None:
    assert minimum_detectable_difference(500) == pytest.approx(0.0438, abs=1e-4)
    assert minimum_detectable_difference(125) == pytest.approx(0.0877, abs=1e-4)
    assert minimum_detectable_difference(100, 0.3) == pytest.approx(0.0588, abs=1e-4)
    assert minimum_detectable_difference(1) is None


@pytest.mark.parametrize(
    ("given_p", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([None, 0.02, 0.5], [None, 0.04, 0.5]),
        ([0.9, 0.8], [1.0, 1.0]),
        ([None], [None]),
        ([], []),
    ],
)
def test_holm_adjusts_by_the_number_of_tests_still_open(
    given_p: list[float | None], adjusted: list[float | None]
) -> None:
    assert holm(given_p) == pytest.approx(adjusted)


def test_seeds_and_questions_are_reported_apart() -> None:
    report = over_seeds([[1.0, 0.0, 1.0, None], [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    # The fourth question lacks a value in the first run, so it counts in none.
    assert report.per_seed == pytest.approx((2 / 3, 1.0, 1 / 3))
    assert report.seed_sd == pytest.approx(1 / 3)
    assert report.seeds == 3
    assert report.questions == replace(bootstrap_mean([1.0, 1 / 3, 2 / 3]), left_out=1)


def test_seeds_at_the_edges() -> None:
    assert over_seeds([[1.0, 0.0] * 50] * 3).seed_sd == 0.0
    assert over_seeds([[0.5]]) == SeedReport(Estimate(0.5, None, None, 1), (0.5,), None, 1)
    assert over_seeds([[None], [1.0]]) == SeedReport(Estimate(None, None, None, 0, left_out=1), (), None, 2)
    assert over_seeds([[]]) == SeedReport(Estimate(None, None, None, 0), (), None, 1)


def test_a_ratio_whose_denominator_may_vanish_has_no_upper_bound() -> None:
    """A resample is 10/4, 10/2 twice as often, or 10/0: the upper tail is infinite, the lower bound is 2.5."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bootstrap_ratio([5.0, 5.0], [0.0, 2.0]) == Estimate(5.0, 2.5, None, 2)
