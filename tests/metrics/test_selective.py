"""Risk and coverage by hand, by enumeration of tie orders, and at the edges."""

import itertools
import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import DataError
from sleuth.metrics.selective import RiskCoverage, risk_coverage


def _curve(confidences: Sequence[float], errors: Sequence[float]) -> RiskCoverage:
    curve = risk_coverage(confidences, errors)
    assert curve is not None
    return curve


def test_the_curve_by_hand() -> None:
    curve = _curve([0.2, 0.9, 0.5, 0.7], [1, 0, 0, 1])
    assert curve.points == [(0.25, 0.0), (0.5, 0.5), (0.75, pytest.approx(1 / 3)), (1.0, 0.5)]
    assert curve.aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    # Errors last: risks 0, 0, 1/3, 1/2.
    assert curve.excess_aurc == pytest.approx(curve.aurc - (1 / 3 + 1 / 2) / 4)
    assert curve.augrc == pytest.approx((0 + 1 + 1 + 2) / 16)
    assert curve.risk_at(0.5) == 0.5
    assert curve.risk_at(0.51) == pytest.approx(1 / 3)
    assert (curve.coverage_at(0.05), curve.coverage_at(0.4), curve.coverage_at(0.5)) == (0.25, 0.75, 1.0)


def test_a_share_that_is_not_exact_in_binary_asks_for_no_question_more() -> None:
    assert _curve([float(-i) for i in range(10)], [0] * 8 + [1] * 2).risk_at(0.8) == 0.0
    assert _curve([float(-i) for i in range(100)], [0] * 7 + [1] * 93).risk_at(0.07) == 0.0


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.5]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=6)
)
def test_ties_are_the_mean_over_their_orders(rows: list[tuple[float, float]]) -> None:
    areas = []
    for order in itertools.permutations(rows):
        errors = [error for _, error in sorted(order, key=lambda row: -row[0])]
        areas.append(statistics.fmean(math.fsum(errors[:k]) / k for k in range(1, len(errors) + 1)))
    curve = _curve([c for c, _ in rows], [e for _, e in rows])
    assert curve.aurc == pytest.approx(statistics.fmean(areas))
    assert 0.0 <= curve.augrc <= 1.0
    assert curve.excess_aurc >= 0.0


def test_edges() -> None:
    assert risk_coverage([], []) is None
    right, wrong = _curve([0.3], [0]), _curve([0.3], [1])
    assert (right.aurc, right.excess_aurc, right.augrc, right.coverage_at(0.0)) == (0.0, 0.0, 0.0, 1.0)
    assert (wrong.aurc, wrong.excess_aurc, wrong.augrc, wrong.coverage_at(0.5)) == (1.0, 0.0, 1.0, 0.0)
    assert _curve([1, 1], [1, 0]).points == [(0.5, 0.5), (1.0, 0.5)]


@pytest.mark.parametrize(
    ("confidences", "errors"),
    [([0.1, math.nan], [0, 0]), ([math.inf], [0]), ([0.1], [1.5]), ([0.1], [math.nan])],
)
def test_bad_input_is_refused(confidences: list[float], errors: list[float]) -> None:
    with pytest.raises(DataError, match="must be finite and an error in"):
        risk_coverage(confidences, errors)
