"""Cost per right answer: a ratio of sums, with an interval that may have no upper end, never infinite."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from sleuth.evaluation.comparing.cost import Cost, cost_per_right


def test_sums_over_sums() -> None:
    found = cost_per_right([10.0, 30.0, 20.0, 40.0] * 50, [1.0, 0.0, 1.0, 0.0] * 50)
    assert found.value == pytest.approx(50.0)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 50.0 < found.high
    assert found.n == 200


def test_the_interval_is_that_of_the_share_if_every_question_costs_the_same() -> None:
    # 100 questions, 50 right: the share's 95 % interval is about 0.40 … 0.60, so 1/share is 1.67 … 2.5.
    found = cost_per_right([1.0] * 100, [1.0, 0.0] * 50)
    assert found.value == 2.0
    assert found.low == pytest.approx(1 / 0.6, rel=0.03)
    assert found.high == pytest.approx(1 / 0.4, rel=0.03)


def test_all_right_costs_the_mean_exactly() -> None:
    assert cost_per_right([2.0] * 8, [1.0] * 8) == Cost(2.0, 2.0, 2.0, 8)


def test_few_right_answers_have_no_upper_bound() -> None:
    found = cost_per_right([1.0] * 40, [1.0] + [0.0] * 39)
    assert found.value == 40.0
    assert found.low is not None
    assert found.high is None
    json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize(
    ("costs", "right", "expected"),
    [
        ([], [], Cost(None, None, None, 0)),
        ([1.0, 2.0], [0.0, 0.0], Cost(None, None, None, 2)),
        ([1.0, None], [1.0, 1.0], Cost(None, None, None, 2)),
        ([3.0], [1.0], Cost(3.0, None, None, 1)),
        ([0.0, 0.0], [1.0, 1.0], Cost(0.0, 0.0, 0.0, 2)),
    ],
)
def test_edges(costs: list[float | None], right: list[float], expected: Cost) -> None:
    assert cost_per_right(costs, right) == expected


def test_the_same_values_give_the_same_interval() -> None:
    costs, right = [float(i % 9) for i in range(99)], [float(i % 3 == 0) for i in range(99)]
    assert cost_per_right(costs, right) == cost_per_right(costs, right)
