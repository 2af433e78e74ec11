"""Cost per right answer: a ratio of sums, with an interval that may have no upper end, never infinite."""

import pytest

from sleuth.evaluation.comparing.systems import Cost, cost_per_right


def test_with_equal_costs_the_interval_is_that_of_the_share() -> None:
    # 100 questions, 50 right: the share's 95 % interval is about 0.40 … 0.60, so 1/share is 1.67 … 2.5.
    found = cost_per_right([1.0] * 100, [1.0, 0.0] * 50)
    assert found.value == 2.0
    assert (found.low, found.high) == (pytest.approx(1 / 0.6, rel=0.03), pytest.approx(1 / 0.4, rel=0.03))
    assert cost_per_right([1.0] * 100, [1.0, 0.0] * 50) == found
    # A ratio of sums: 100 in all for every two right answers.
    assert cost_per_right([10.0, 30.0, 20.0, 40.0], [1.0, 0.0, 1.0, 0.0]).value == pytest.approx(50.0)


def test_few_right_answers_have_no_upper_bound() -> None:
    found = cost_per_right([1.0] * 40, [1.0] + [0.0] * 39)
    assert (found.value, found.high) == (40.0, None)
    assert str(found) == f"40 [{found.low:.3g}, no bound]"


@pytest.mark.parametrize(
    ("costs", "right", "expected", "text"),
    [
        ([], [], Cost(None, None, None, 0), "–"),
        ([1.0, 2.0], [0.0, 0.0], Cost(None, None, None, 2), "–"),
        ([1.0, None], [1.0, 1.0], Cost(None, None, None, 2), "–"),
        ([1234.5], [1.0], Cost(1234.5, None, None, 1), "1,230"),
        ([0.0, 0.0], [1.0, 1.0], Cost(0.0, 0.0, 0.0, 2), "0 [0, 0]"),
        ([2.0] * 8, [1.0] * 8, Cost(2.0, 2.0, 2.0, 8), "2 [2, 2]"),
    ],
)
def test_edges(costs: list[float | None], right: list[float], expected: Cost, text: str) -> None:
    assert cost_per_right(costs, right) == expected
    assert str(expected) == text
