"""Intervals and tests against closed forms, exact enumeration and known limits."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.errors import DataError
from sleuth.evaluation.statistics import (
    Difference,
    Estimate,
    SeedReport,
    _resampled_means,
    bootstrap_mean,
    holm,
    minimum_detectable_difference,
    over_seeds,
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


@settings(deadline=None)
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


def test_holm_adjusts_by_the_number_of_tests_still_open_and_keeps_the_order_given() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_does_not_count_a_test_that_was_not_made() -> None:
    assert holm([None, 0.02, 0.5]) == [None, 0.04, 0.5]
    assert holm([]) == []
    assert holm([None]) == [None]


def test_holm_never_exceeds_one() -> None:
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_probability(bad: float) -> None:
    with pytest.raises(DataError, match="p-value 1"):
        holm([0.5, bad])


def test_every_value_is_drawn_equally_often() -> None:
    """The mean of draws of one value among zeros is its share of the draws: 1/n on average, whatever its place."""
    n, resamples = 701, 4000
    for place in (0, 1, 350, 699, 700):
        # Distinct values, so that they are drawn one by one, and so small that only the one counts.
        values = np.arange(n, dtype=np.float64) * 1e-12
        values[place] = 1.0
        means = _resampled_means(values, resamples, seed=place)
        assert means.mean() == pytest.approx(1 / n, abs=4 * math.sqrt(1 / n / n / resamples) * 1.01)
        assert (means * n).var() == pytest.approx(1 - 1 / n, abs=0.15)


def test_seeds_and_questions_are_reported_apart() -> None:
    runs: list[list[float | None]] = [[1.0, 0.0, 1.0, None], [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
    report = over_seeds(runs)
    # The fourth question lacks a value in the first run, so it counts in none.
    assert report.per_seed == pytest.approx((2 / 3, 1.0, 1 / 3))
    assert report.seed_sd == pytest.approx(1 / 3)
    assert (report.questions.n, report.questions.left_out, report.seeds) == (3, 1, 3)
    assert report.questions.value == pytest.approx(2 / 3)
    assert report.questions == replace(bootstrap_mean([1.0, 1 / 3, 2 / 3]), left_out=1)
    assert report.to_dict()["seeds"] == 3


def test_seeds_that_agree_have_no_spread_however_much_questions_differ() -> None:
    report = over_seeds([[1.0, 0.0] * 50] * 3)
    assert report.seed_sd == 0.0
    assert report.questions.low is not None
    assert report.questions.low < 0.45


def test_seeds_at_the_edges() -> None:
    assert over_seeds([[0.5]]) == SeedReport(Estimate(0.5, None, None, 1), (0.5,), None, 1)
    assert over_seeds([[None], [1.0]]) == SeedReport(Estimate(None, None, None, 0, left_out=1), (), None, 2)
    assert over_seeds([[]]) == SeedReport(Estimate(None, None, None, 0), (), None, 1)
    with pytest.raises(DataError, match="no runs"):
        over_seeds([])
    with pytest.raises(DataError, match=r"equally many questions, not \[1, 2\]"):
        over_seeds([[1.0], [1.0, 0.0]])
    with pytest.raises(DataError, match="value 1 is nan"):
        over_seeds([[1.0], [math.nan]])


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
